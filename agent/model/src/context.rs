//! The words in which providers say that a request exceeds the model's context window.

use std::sync::LazyLock;

use regex::Regex;

/// The sizes that a provider reported when it rejected a request that is too long.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ContextExcess {
    /// Size of the context window, in tokens, or `None` if the provider did not report it.
    pub window: Option<u64>,
    /// Size of the request, in tokens, or `None` if the provider did not report it.
    pub sent: Option<u64>,
}

/// The forms of these messages. `W` stands for the size of the window, and `S` for that of the
/// request; both are numbers. The rest is a regular expression that ignores case. A form with
/// numbers precedes the forms without.
const FORMS: &[&str] = &[
    // vLLM
    r"maximum (?:context|model) length (?:is|of) W tokens?\b.*?\byour request has S input",
    r"passed S input tokens.*?context length is only W",
    r"prompt \(length S\) is longer than the maximum model length of W",
    // OpenAI, Azure, DeepSeek, OpenRouter, vLLM
    r"maximum context length is W tokens?\b.*?\b(?:requested|resulted in)(?: about)? S",
    r"maximum context length is W",
    // Anthropic
    r"prompt is too long: S tokens > W maximum",
    r"exceed context limit: S(?: \+ \d+)? > W",
    // Gemini
    r"input token count(?: is)? \(?S\)?,? (?:but model only supports up to |exceeds the maximum number of tokens allowed \(?)W",
    // llama.cpp, Ollama, LM Studio
    r"request \(S tokens\) exceeds the available context size \(W",
    r"keep the first S tokens.*?context length of only W",
    r"available context size",
    r"exceeded max context length",
    r"input length exceeds",
    // Mistral
    r"prompt contains S tokens.*?model with W maximum context",
    // Cerebras, Groq
    r"current length is S while limit is W",
    r"reduce the length of the messages",
    // xAI
    r"maximum prompt length is W but the request contains S",
    // Fireworks
    r"prompt is too long: S, model maximum context length: W",
    // Together, text-generation-inference
    r"must be <= W\. given: S `?inputs",
    // Cohere, Bedrock and others
    r"prompt is too long|input is too long|too many tokens",
    r"context[ _](?:length|window|size)|maximum context|max_model_len|\bn_ctx\b",
];

/// Returns the sizes in a provider's message, or `None` if the message is not about the length of a
/// request.
pub(super) fn context_excess(message: &str) -> Option<ContextExcess> {
    static FORMS_READ: LazyLock<Vec<Regex>> = LazyLock::new(|| {
        let number = |name: &str| format!(r"(?P<{name}>\d[\d,_]*)");
        let read = |form: &&str| {
            // The letters stand alone, so no word of a form contains them.
            let form = form.replace('W', &number("window")).replace('S', &number("sent"));
            // The forms are compiled in, and a test reads all of them.
            Regex::new(&format!("(?is){form}")).ok()
        };
        FORMS.iter().filter_map(read).collect()
    });
    FORMS_READ.iter().find_map(|form| {
        let found = form.captures(message)?;
        let number = |name: &str| {
            let digits = found.name(name)?.as_str().replace([',', '_'], "");
            digits.parse().ok().filter(|number| *number > 0)
        };
        Some(ContextExcess { window: number("window"), sent: number("sent") })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_providers_are_read() {
        let cases = include_str!("../tests/context.txt");
        let mut read = 0;
        for line in cases.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let [window, sent, message] = line.splitn(3, ' ').collect::<Vec<_>>()[..] else {
                panic!("{line}");
            };
            let expected = ContextExcess { window: window.parse().ok(), sent: sent.parse().ok() };
            assert_eq!(context_excess(message), Some(expected), "{message}");
            read += 1;
        }
        assert!(read >= 20, "{read} messages");
        assert_eq!(context_excess("invalid role `tool`"), None);
        assert_eq!(context_excess(""), None);
    }
}
