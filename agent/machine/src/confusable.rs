//! Look-alike characters. This module maps a character to the ASCII character that it resembles,
//! and recognizes invisible characters.

/// Ranges of characters that are invisible or only modify the preceding character.
const INVISIBLE: &[(u32, u32)] = &[
    (0x00, 0x08),
    (0x0e, 0x1f),
    (0x7f, 0x84),
    (0x86, 0x9f),
    (0xad, 0xad),
    (0x300, 0x36f),
    (0x483, 0x489),
    (0x61c, 0x61c),
    (0x115f, 0x1160),
    (0x17b4, 0x17b5),
    (0x180b, 0x180f),
    (0x1ab0, 0x1aff),
    (0x1dc0, 0x1dff),
    (0x200b, 0x200f),
    (0x202a, 0x202e),
    (0x2060, 0x206f),
    (0x20d0, 0x20ff),
    (0x3164, 0x3164),
    (0xfe00, 0xfe0f),
    (0xfe20, 0xfe2f),
    (0xfeff, 0xfeff),
    (0xffa0, 0xffa0),
    (0xfff0, 0xfffb),
    (0x1_d173, 0x1_d17a),
    (0xe_0000, 0xe_0fff),
];

/// Returns the ASCII character that `c` resembles, in lowercase, or `c` itself if it resembles
/// none. Returns `None` if `c` is invisible.
pub(crate) fn fold(c: char) -> Option<char> {
    let code = u32::from(c);
    if matches!(code, 0x20..=0x7e) || matches!(c, '\t' | '\n' | '\r') {
        return Some(c.to_ascii_lowercase());
    }
    if INVISIBLE.iter().any(|(first, last)| (*first..=*last).contains(&code)) {
        return None;
    }
    let ascii = match code {
        // Full-width forms.
        0xff01..=0xff5e => char::from_u32(code - 0xfee0),
        // Circled letters.
        0x24b6..=0x24e9 => letter((code - 0x24b6) % 26),
        // Mathematical letters: alphabets of 26 capital and 26 small letters, followed by Greek
        // letters and digits.
        0x1_d400..=0x1_d6a3 => letter((code - 0x1_d400) % 26),
        0x1_d7ce..=0x1_d7ff => char::from_digit((code - 0x1_d7ce) % 10, 10),
        // Squared and boxed letters.
        0x1_f110..=0x1_f129 => letter(code - 0x1_f110),
        0x1_f130..=0x1_f149 => letter(code - 0x1_f130),
        0x1_f150..=0x1_f169 => letter(code - 0x1_f150),
        0x1_f170..=0x1_f189 => letter(code - 0x1_f170),
        _ => look_alike(c),
    };
    Some(ascii.map_or(c, |ascii| ascii.to_ascii_lowercase()))
}

fn letter(at: u32) -> Option<char> {
    char::from_digit(at + 10, 36)
}

/// Returns the ASCII character that `c` resembles. Recognizes accented letters, letters of other
/// alphabets, brackets and vertical bars. Returns `None` for any other character.
fn look_alike(c: char) -> Option<char> {
    Some(match c {
        'а' | 'А' | 'α' | 'Α' | 'à' | 'á' | 'â' | 'ã' | 'ä' | 'å' | 'ā' | 'ă' | 'ą' | 'À' | 'Á'
        | 'Â' | 'Ã' | 'Ä' | 'Å' | 'Ā' | 'Ă' | 'Ą' | 'ɑ' => 'a',
        'Ь' | 'В' | 'в' | 'Β' | 'β' | 'ƅ' => 'b',
        'с' | 'С' | 'ϲ' | 'ç' | 'ć' | 'č' | 'Ç' | 'Ć' | 'Č' => 'c',
        'е' | 'Е' | 'ε' | 'Ε' | 'è' | 'é' | 'ê' | 'ë' | 'ē' | 'ĕ' | 'ė' | 'ę' | 'ě' | 'È' | 'É'
        | 'Ê' | 'Ë' | 'Ē' | 'Ĕ' | 'Ė' | 'Ę' | 'Ě' | '℮' => 'e',
        'һ' | 'Н' | 'н' | 'Η' => 'h',
        'і' | 'І' | 'ι' | 'Ι' | 'ì' | 'í' | 'î' | 'ï' | 'ī' | 'ĭ' | 'į' | 'ı' | 'Ì' | 'Í' | 'Î'
        | 'Ï' | 'Ī' | 'Ĭ' | 'Į' | 'İ' => 'i',
        'к' | 'К' | 'κ' | 'Κ' => 'k',
        'м' | 'М' | 'Μ' => 'm',
        'ո' | 'Ν' | 'п' | 'ñ' | 'ń' | 'ņ' | 'ň' | 'Ñ' | 'Ń' | 'Ņ' | 'Ň' => 'n',
        'о' | 'О' | 'ο' | 'Ο' | 'σ' | 'ò' | 'ó' | 'ô' | 'õ' | 'ö' | 'ø' | 'ō' | 'ŏ' | 'ő' | 'Ò'
        | 'Ó' | 'Ô' | 'Õ' | 'Ö' | 'Ø' | 'Ō' | 'Ŏ' | 'Ő' | 'օ' => 'o',
        'р' | 'Р' | 'ρ' | 'Ρ' => 'p',
        'г' | 'ŕ' | 'ŗ' | 'ř' | 'Ŕ' | 'Ŗ' | 'Ř' => 'r',
        'ѕ' | 'Ѕ' | 'ś' | 'ŝ' | 'ş' | 'š' | 'Ś' | 'Ŝ' | 'Ş' | 'Š' => 's',
        'т' | 'Т' | 'τ' | 'Τ' | 'ţ' | 'ť' | 'ŧ' | 'Ţ' | 'Ť' | 'Ŧ' => 't',
        'υ' | 'ù' | 'ú' | 'û' | 'ü' | 'ū' | 'ŭ' | 'ů' | 'ű' | 'ų' | 'Ù' | 'Ú' | 'Û' | 'Ü' | 'Ū'
        | 'Ŭ' | 'Ů' | 'Ű' | 'Ų' => 'u',
        'ν' | 'ѵ' | 'Ѵ' => 'v',
        'х' | 'Х' | 'χ' | 'Χ' => 'x',
        'у' | 'У' | 'γ' | 'Υ' | 'ý' | 'ÿ' | 'Ý' => 'y',
        '⟦' | '【' | '〔' | '❲' | '⁅' | '〚' | '〖' | '⦋' => '[',
        '‹' | '〈' | '⟨' | '❮' | '❰' | '《' | '˂' => '<',
        '›' | '〉' | '⟩' | '❯' | '❱' | '》' | '˃' => '>',
        '∣' | '│' | '｜' | '❘' | 'ǀ' => '|',
        _ => return None,
    })
}
