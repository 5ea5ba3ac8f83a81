//! The forms in which model families write calls and channels, as data.
//!
//! To read another family, add its rows here. The scanner and the readers know no family by name.
//!
//! In a pattern, a space matches any whitespace, also none, and `~` matches a namespace such as
//! `seed:`, also none. The character `｜` also matches `|`, and `▁` also matches `_`, `\_` and a
//! space, because servers and fine-tuned models replace these characters. All other characters match
//! themselves.

/// The place in which a form may begin. Nothing begins in code: a fence, inline code, a quoted line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// At any position.
    Anywhere,
    /// At any position that does not follow a letter or a digit.
    Word,
    /// At the start of a line, or directly after another form.
    Line,
    /// As before, or directly after a character other than a space: not within a sentence.
    Touching,
    /// At the start of the answer, or directly after a thought.
    Start,
    /// After another form of the table.
    AfterForm,
}

/// The form of a call.
#[derive(Debug)]
pub(super) struct CallForm {
    /// The model families that write it.
    pub(super) families: &'static str,
    /// The patterns that open it.
    pub(super) openings: &'static [&'static str],
    pub(super) place: Place,
    pub(super) content: Content,
    /// The patterns that may follow the content. Closing tags, such as `</tool_call>`,
    /// `<|/tool_call|>` and `[/TOOL_CALLS]`, may follow every call and are not listed.
    pub(super) closings: &'static [&'static str],
    /// If true, the opening occurs in other texts, too: the call counts only if nothing follows it.
    pub(super) is_last: bool,
    /// If true, the call counts only if it names a known program.
    pub(super) is_known: bool,
}

/// The content of a call.
#[derive(Debug)]
pub(super) enum Content {
    /// JSON objects with the name and the arguments, one after another or in an array.
    Objects,
    /// The same, but the opening is the first part of the JSON.
    ObjectsFromOpening,
    /// JSON objects with one field each, whose name is that of the call.
    ObjectsByName,
    /// A name, then any of the patterns `between`, then the arguments in one of the forms.
    Named { between: &'static [&'static str], arguments: &'static [Arguments] },
    /// The rest of a tag with the name in it, `name>` or `"name">`, then the arguments.
    Tag { arguments: &'static [Arguments] },
    /// Calls in the syntax of Python: one per line, or in the brackets of a list.
    Python,
    /// The same, but the opening is the first part of the call or of the list.
    PythonFromOpening,
    /// Any form whose opening is not plain.
    AnyForm,
}

/// The form of the arguments.
#[derive(Debug)]
pub(super) enum Arguments {
    /// A JSON object.
    Json,
    /// `(name="value", …)`.
    Python,
    /// One tag per argument: the opening up to the argument's name, and the closing.
    Tags(&'static str, &'static str),
    /// One pair of tags per argument: the tags of the name, and those of the value.
    Pairs([&'static str; 2], [&'static str; 2]),
    /// One tag per argument, with the argument's name: `<path>a.txt</path>`.
    NamedTags,
    /// `{name:value, …}`, where the token encloses strings.
    Enclosed(&'static str),
    /// No arguments. The call must be closed and name a known program.
    Nothing,
}

use Arguments::{Enclosed, Json, NamedTags, Nothing, Pairs, Tags};
use Content::{
    AnyForm, Named, Objects, ObjectsByName, ObjectsFromOpening, Python, PythonFromOpening, Tag,
};

const fn form(
    families: &'static str,
    openings: &'static [&'static str],
    content: Content,
    closings: &'static [&'static str],
) -> CallForm {
    let (place, is_last, is_known) = (Place::Anywhere, false, false);
    CallForm { families, openings, place, content, closings, is_last, is_known }
}

const fn plain(
    families: &'static str,
    openings: &'static [&'static str],
    place: Place,
    content: Content,
    closings: &'static [&'static str],
) -> CallForm {
    CallForm { families, openings, place, content, closings, is_last: true, is_known: true }
}

const HARMONY: Content = Named {
    between: &[
        "<|channel|>commentary",
        "<|channel|>analysis",
        "<|channel|>final",
        "<|constrain|>",
        "<|message|>",
        "commentary",
        "analysis",
        "json",
        "code",
    ],
    arguments: &[Json],
};

const FENCES: &[&str] =
    &["```tool_code\n", "```tool_call\n", "```tool_calls\n", "```tool\n", "```function_call\n"];

const HARMONY_END: &[&str] = &["<|call|>", "<|end|>", "<|return|>"];

/// The forms of calls. An answer is read in the first form that fits.
pub(super) const CALLS: &[CallForm] = &[
    // Harmony: with its special tokens, and with the tokens removed by the server.
    form(
        "gpt-oss",
        &[
            "<|start|>assistant to=",
            "<|start|>assistant <|channel|>commentary to=",
            "<|start|>assistant <|channel|>analysis to=",
            "<|channel|>commentary to=",
            "<|channel|>analysis to=",
        ],
        HARMONY,
        HARMONY_END,
    ),
    form(
        "gpt-oss",
        &[
            "assistantcommentary to=functions.",
            "assistantanalysis to=functions.",
            "assistant to=functions.",
        ],
        HARMONY,
        HARMONY_END,
    ),
    CallForm {
        place: Place::Start,
        ..form(
            "gpt-oss",
            &["commentary to=functions.", "analysis to=functions."],
            HARMONY,
            HARMONY_END,
        )
    },
    CallForm { place: Place::Word, ..form("gpt-oss", &["to=functions."], HARMONY, HARMONY_END) },
    form(
        "DeepSeek V3.2",
        &[
            "<｜DSML｜function_calls> <｜DSML｜invoke name=",
            "<｜DSML｜tool_calls> <｜DSML｜invoke name=",
            "<｜DSML｜invoke name=",
        ],
        Tag {
            arguments: &[Json, Tags("<｜DSML｜parameter name=", "</｜DSML｜parameter>"), Nothing],
        },
        &["</｜DSML｜invoke>", "</｜DSML｜function_calls>", "</｜DSML｜tool_calls>"],
    ),
    form(
        "Step 3",
        &[
            "<｜tool▁calls▁begin｜> <｜tool▁call▁begin｜> function <｜tool▁sep｜> <~invoke name=",
            "<｜tool▁call▁begin｜> function <｜tool▁sep｜> <~invoke name=",
        ],
        Tag { arguments: &[Json, Tags("<~parameter name=", "</~parameter>"), Nothing] },
        &["</~invoke>", "<｜tool▁call▁end｜>", "<｜tool▁calls▁end｜>"],
    ),
    // The JSON is in a fence. In V3.1, it is bare.
    form(
        "DeepSeek V3, DeepSeek R1",
        &[
            "<｜tool▁calls▁begin｜> <｜tool▁call▁begin｜> function <｜tool▁sep｜>",
            "<｜tool▁call▁begin｜> function <｜tool▁sep｜>",
        ],
        Named { between: &["```json", "```"], arguments: &[Json] },
        &["```", "<｜tool▁call▁end｜>", "<｜tool▁calls▁end｜>", "<｜end▁of▁sentence｜>"],
    ),
    // A server has removed the opening.
    CallForm {
        place: Place::Line,
        ..form(
            "DeepSeek V3, DeepSeek R1",
            &["function <｜tool▁sep｜>"],
            Named { between: &["```json", "```"], arguments: &[Json] },
            &["```", "<｜tool▁call▁end｜>", "<｜tool▁calls▁end｜>", "<｜end▁of▁sentence｜>"],
        )
    },
    form(
        "DeepSeek V3.1",
        &["<｜tool▁calls▁begin｜> <｜tool▁call▁begin｜>", "<｜tool▁call▁begin｜>"],
        Named { between: &["<｜tool▁sep｜>", "```json", "```"], arguments: &[Json] },
        &["```", "<｜tool▁call▁end｜>", "<｜tool▁calls▁end｜>", "<｜end▁of▁sentence｜>"],
    ),
    form(
        "Kimi K2",
        &[
            "<|tool_calls_section_begin|> <|tool_call_begin|>",
            "<|tool_call_section_begin|> <|tool_call_begin|>",
            "<|tool_call_begin|>",
        ],
        Named { between: &["<|tool_call_argument_begin|>"], arguments: &[Json] },
        &["<|tool_call_end|>", "<|tool_calls_section_end|>", "<|tool_call_section_end|>"],
    ),
    form(
        "Qwen3-Coder, Nemotron 3, Seed-OSS, Llama, Functionary, Step 3.5",
        &[
            "<~tool_call> <function=",
            "<~tool_calls> <function=",
            "<function=",
            "<~tool_call> <function name=",
            "<function name=",
        ],
        Tag {
            arguments: &[
                Json,
                Tags("<parameter=", "</parameter>"),
                Tags("<parameter name=", "</parameter>"),
                Nothing,
            ],
        },
        &["</function>", "</~tool_call>"],
    ),
    form(
        "MiniMax M2, Claude",
        &[
            "<~function_calls> <~invoke name=",
            "<~tool_calls> <~invoke name=",
            "<~tool_call> <~invoke name=",
            "<~invoke name=",
        ],
        Tag { arguments: &[Json, Tags("<~parameter name=", "</~parameter>"), Nothing] },
        &["</~invoke>", "</~function_calls>", "</~tool_call>"],
    ),
    form(
        "Claude 2",
        &["<~function_calls> <~invoke> <~tool_name>", "<~invoke> <~tool_name>"],
        Named {
            between: &["</~tool_name>", "<~parameters>"],
            arguments: &[NamedTags, Json, Nothing],
        },
        &["</~parameters>", "</~invoke>", "</~function_calls>"],
    ),
    form("Apertus", &["<|tools_prefix|>"], ObjectsByName, &["<|tools_suffix|>"]),
    form("Apertus", &["<|tools_prefix|>"], Objects, &["<|tools_suffix|>"]),
    form(
        "Hermes, Qwen, Granite 4, Ernie, Hunyuan, Jamba, MiniMax M1",
        &["<~tool_calls> <~tool_call>", "<~tool_call>", "<~tool_calls>", "<function_call>"],
        Objects,
        &[],
    ),
    form(
        "GLM 4, LongCat",
        &["<~tool_call>", "<longcat_tool_call>"],
        Named {
            between: &[],
            arguments: &[
                Pairs(["<arg_key>", "</arg_key>"], ["<arg_value>", "</arg_value>"]),
                Pairs(
                    ["<longcat_arg_key>", "</longcat_arg_key>"],
                    ["<longcat_arg_value>", "</longcat_arg_value>"],
                ),
                Json,
                Arguments::Python,
                Nothing,
            ],
        },
        &["</tool_call>", "</longcat_tool_call>"],
    ),
    form("Olmo 3, Claude", &["<~function_calls>"], Objects, &[]),
    form("Olmo 3", &["<~function_calls>"], Python, &[]),
    form(
        "Granite 3, Phi 4, Granite 20B",
        &["<|tool_call|>", "<|tool_calls|>", "<|tool_call>"],
        Objects,
        &["<|end|>", "<tool_call|>"],
    ),
    form(
        "Gemma 4",
        &["<|tool_call> call:"],
        Named { between: &[], arguments: &[Enclosed("<|\"|>"), Json] },
        &["<tool_call|>", "<|tool_response>"],
    ),
    form(
        "FunctionGemma",
        &["<start_function_call> call:"],
        Named { between: &[], arguments: &[Enclosed("<escape>"), Json] },
        &["<end_function_call>", "<start_function_response>"],
    ),
    form("Mistral", &["[TOOL_CALLS]"], Objects, &[]),
    form("Mistral", &["[TOOL_CALLS]"], Named { between: &["[ARGS]"], arguments: &[Json] }, &[]),
    form("Llama 3", &["<|python_tag|>"], Objects, &["<|eom_id|>", "<|eot_id|>"]),
    form("Llama 3, Llama 4", &["<|python_tag|>"], Python, &["<|eom_id|>", "<|eot_id|>"]),
    form(
        "LFM 2, Llama 4",
        &["<|tool_call_start|>", "<|python_start|>"],
        Python,
        &["<|tool_call_end|>", "<|python_end|>"],
    ),
    form("LFM 2", &["<|tool_call_start|>"], Objects, &["<|tool_call_end|>"]),
    form("Nemotron", &["<TOOLCALL>"], Objects, &[]),
    form("Cohere", &["<|START_ACTION|>"], Objects, &["<|END_ACTION|>"]),
    form("InternLM", &["<|action_start|> <|plugin|>", "<|plugin|>"], Objects, &["<|action_end|>"]),
    form(
        "Qwen 2",
        &["✿FUNCTION✿:"],
        Named { between: &["✿ARGS✿:"], arguments: &[Json] },
        &["✿RESULT✿:"],
    ),
    CallForm { place: Place::Line, ..form("Phi 4, Firefunction", &["functools"], Objects, &[]) },
    // The forms without marks.
    CallForm {
        place: Place::Line,
        is_known: true,
        ..form(
            "Kimi K2",
            &["functions."],
            Named { between: &[], arguments: &[Json, Arguments::Python] },
            &[],
        )
    },
    CallForm {
        place: Place::Line,
        is_known: true,
        ..form("Functionary", &[">>>"], Named { between: &[], arguments: &[Json] }, &["<|eot_id|>"])
    },
    plain(
        "Command R, ReAct",
        &["Action:"],
        Place::Line,
        Named { between: &["Action Input:"], arguments: &[Json] },
        &[],
    ),
    plain("Command R", &["Action: ```json"], Place::Line, Objects, &["```"]),
    plain("Llama 3, xLAM, Hermes", &["{"], Place::Line, ObjectsFromOpening, &[]),
    plain("xLAM, Hermes", &["[ {"], Place::Line, ObjectsFromOpening, &[]),
    plain("Llama 3, Llama 4", &["["], Place::Line, PythonFromOpening, &[]),
    plain("Gemma", &["print(default_api.", "default_api."], Place::Line, PythonFromOpening, &[]),
    // The fences of calls.
    CallForm { is_known: false, ..plain("Gemma", FENCES, Place::Line, Python, &["```"]) },
    CallForm { is_known: false, ..plain("Hermes, Gemma", FENCES, Place::Line, Objects, &["```"]) },
    // Any other fence counts only if it is the whole answer.
    plain("Llama, Gemma", &["```json\n", "```\n"], Place::Start, Objects, &["```"]),
    plain("Llama, Gemma", &["```python\n", "```\n"], Place::Start, Python, &["```"]),
    plain(
        "all",
        &["```xml\n", "```tool_call\n", "```tool_code\n", "```\n"],
        Place::Start,
        AnyForm,
        &["```"],
    ),
];

/// The form of a channel: text that is a thought, or the end of all thoughts.
#[derive(Debug)]
pub(super) struct ChannelForm {
    /// The model families that write it.
    #[expect(dead_code, reason = "it documents the row")]
    pub(super) families: &'static str,
    /// The patterns that open it.
    pub(super) openings: &'static [&'static str],
    pub(super) place: Place,
    pub(super) channel: Channel,
}

/// The content of a channel.
#[derive(Debug)]
pub(super) enum Channel {
    /// A thought, up to one of the patterns.
    Thought {
        /// The patterns that end it and belong to it.
        closings: &'static [&'static str],
        /// The patterns of the next form.
        nexts: &'static [&'static str],
        /// If true, the opening is ordinary text: it counts only if the thought ends, and a word
        /// only if it touches the next one.
        is_plain: bool,
    },
    /// The answer. The text before it is a thought.
    Answer,
    /// Nothing: the pattern is stripped.
    Nothing,
}

const HARMONY_NEXT: &[&str] = &[
    "<|start|>",
    "<|channel|>",
    "assistantfinal",
    "assistantcommentary",
    "assistantanalysis",
    "assistant to=functions.",
];

const fn channel(
    families: &'static str,
    openings: &'static [&'static str],
    place: Place,
    channel: Channel,
) -> ChannelForm {
    ChannelForm { families, openings, place, channel }
}

const fn thought(closings: &'static [&'static str]) -> Channel {
    Channel::Thought { closings, nexts: &[], is_plain: false }
}

/// The channels of answers, except those in tags.
pub(super) const CHANNELS: &[ChannelForm] = &[
    channel(
        "gpt-oss",
        &["<|start|>assistant <|channel|>analysis <|message|>", "<|channel|>analysis <|message|>"],
        Place::Touching,
        Channel::Thought { closings: HARMONY_END, nexts: HARMONY_NEXT, is_plain: false },
    ),
    channel(
        "gpt-oss",
        &[
            "<|start|>assistant <|channel|>final <|constrain|>json <|message|>",
            "<|channel|>final <|constrain|>json <|message|>",
            "<|start|>assistant <|channel|>final <|message|>",
            "<|channel|>final <|message|>",
        ],
        Place::Touching,
        Channel::Answer,
    ),
    // A preamble. It is the answer if nothing follows it.
    channel(
        "gpt-oss",
        &[
            "<|start|>assistant <|channel|>commentary <|message|>",
            "<|channel|>commentary <|message|>",
        ],
        Place::Touching,
        Channel::Nothing,
    ),
    channel("gpt-oss", &["<|start|>assistant <|message|>"], Place::Touching, Channel::Answer),
    channel("gpt-oss", &["<|end|>", "<|return|>"], Place::AfterForm, Channel::Nothing),
    channel(
        "gpt-oss",
        &["assistantanalysis"],
        Place::Anywhere,
        Channel::Thought { closings: &[], nexts: HARMONY_NEXT, is_plain: true },
    ),
    channel(
        "gpt-oss",
        &["analysis", "commentary"],
        Place::Start,
        Channel::Thought { closings: &[], nexts: HARMONY_NEXT, is_plain: true },
    ),
    channel("gpt-oss", &["assistantfinal"], Place::Anywhere, Channel::Answer),
    channel("gpt-oss", &["assistantcommentary"], Place::AfterForm, Channel::Nothing),
    channel(
        "Granite 3",
        &["Here is my thought process:", "Here's my thought process:"],
        Place::Start,
        Channel::Thought {
            closings: &["Here is my response:", "Here's my response:"],
            nexts: &[],
            is_plain: true,
        },
    ),
    channel("Mistral", &["[THINK]"], Place::Line, thought(&["[/THINK]"])),
    channel("Cohere", &["<|START_THINKING|>"], Place::Touching, thought(&["<|END_THINKING|>"])),
    channel("Cohere", &["<|START_RESPONSE|>", "<|START_TEXT|>"], Place::Touching, Channel::Answer),
    channel("Cohere", &["<|END_RESPONSE|>", "<|END_TEXT|>"], Place::AfterForm, Channel::Nothing),
    channel("Apertus", &["<|inner_prefix|>"], Place::Touching, thought(&["<|inner_suffix|>"])),
    channel("Functionary", &[">>>all\n"], Place::Line, Channel::Nothing),
    channel("Kimi", &["◁think▷"], Place::Touching, thought(&["◁/think▷"])),
    channel(
        "Gemma 4",
        &["<|channel>thought\n", "<|channel>thought"],
        Place::Touching,
        thought(&["<channel|>"]),
    ),
    channel(
        "OpenThinker",
        &["<|begin_of_thought|>"],
        Place::Touching,
        thought(&["<|end_of_thought|>"]),
    ),
    channel("OpenThinker", &["<|begin_of_solution|>"], Place::Touching, Channel::Answer),
    channel("OpenThinker", &["<|end_of_solution|>"], Place::AfterForm, Channel::Nothing),
];

/// The names of the tags that contain thoughts: `<think>…</think>`. They may have a namespace, as in
/// `<seed:think>`, and attributes.
pub(super) const THOUGHT_TAGS: &[&str] = &[
    "reasoning",
    "reason",
    "thinking",
    "think",
    "thoughts",
    "thought",
    "scratchpad",
    "scratch_pad",
];

/// The closings of thoughts that chat templates open. The text before such a closing is a thought
/// even without an opening.
pub(super) const UNOPENED: &[&str] = &["[/THINK]", "<|END_THINKING|>", "◁/think▷"];

/// The words that name a channel of harmony. Without tokens, such a word begins the answer and touches
/// the next one, as in `analysisWe need`.
pub(crate) const CHANNEL_WORDS: &[&str] = &["analysis", "commentary"];

/// The names of fences that a model writes around a call.
pub(crate) const CALL_FENCES: &[&str] = &["tool_code", "tool_call", "tool_calls", "function_call"];

/// The place in which a mark is used, and not mentioned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MarkPlace {
    /// The text occurs nowhere else.
    Always,
    /// Before content of the format, and after no word of a sentence. Anywhere else, it is mentioned.
    BeforeContent,
    /// As before, but the text is an ordinary tag, which counts only where it may be part of a call.
    InFormat,
}

use MarkPlace::{Always, BeforeContent, InFormat};

/// The texts that belong to the formats of model families, in addition to special tokens such as
/// `<|im_end|>`. Outside of code and quotes, each is a mark: the text was not meant for the user.
pub(super) const FORMAT_MARKS: &[(&str, MarkPlace)] = &[
    // Harmony, without its tokens.
    ("assistantfinal", Always),
    ("assistantcommentary", Always),
    ("assistantanalysis", Always),
    ("to=functions.", Always),
    // Hermes, Qwen, GLM, Granite, Nemotron, MiniMax, Seed-OSS, Step.
    ("<~tool_call>", InFormat),
    ("</~tool_call>", InFormat),
    ("<~tool_calls>", InFormat),
    ("</~tool_calls>", InFormat),
    ("<~tool_response>", InFormat),
    ("<TOOLCALL>", InFormat),
    ("</TOOLCALL>", InFormat),
    ("<longcat_tool_call>", InFormat),
    ("<function_call>", InFormat),
    ("</function_call>", InFormat),
    ("<~function_calls>", InFormat),
    ("</~function_calls>", InFormat),
    ("<function=", InFormat),
    ("</function>", InFormat),
    ("<parameter=", InFormat),
    ("</~parameter>", InFormat),
    ("<arg_key>", InFormat),
    ("</arg_key>", InFormat),
    ("<arg_value>", InFormat),
    ("</arg_value>", InFormat),
    ("<~invoke name=", InFormat),
    ("<~invoke>", InFormat),
    ("<~tool_name>", InFormat),
    ("</~tool_name>", InFormat),
    ("</~parameters>", InFormat),
    ("</~invoke>", InFormat),
    ("<~parameter name=", InFormat),
    // Mistral, Llama 2.
    ("[TOOL_CALLS]", BeforeContent),
    ("[/TOOL_CALLS]", BeforeContent),
    ("[TOOL_RESULTS]", BeforeContent),
    ("[/TOOL_RESULTS]", BeforeContent),
    ("[AVAILABLE_TOOLS]", BeforeContent),
    ("[CALL_ID]", BeforeContent),
    ("[ARGS]", BeforeContent),
    ("[INST]", BeforeContent),
    ("[/INST]", BeforeContent),
    ("<<SYS>>", BeforeContent),
    // Gemma.
    ("<start_of_turn>", BeforeContent),
    ("<end_of_turn>", BeforeContent),
    ("<start_function_call>", BeforeContent),
    ("<end_function_call>", BeforeContent),
    // Kimi, Qwen 2.
    ("◁think▷", BeforeContent),
    ("◁/think▷", BeforeContent),
    ("✿FUNCTION✿", BeforeContent),
    ("✿ARGS✿", BeforeContent),
];
