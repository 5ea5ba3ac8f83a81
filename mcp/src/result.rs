//! The result of a call as the text that a program gets.

use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};

use crate::ServerError;
use crate::definition::Tool;

/// Maximum number of violations that an error lists.
const MAX_FAULTS: usize = 4;

/// Returns the text of a result: the structured result as JSON if the tool has a schema for it,
/// otherwise the texts of its content, one below the other.
///
/// # Errors
/// If the tool reports a failure, or its result violates its schema.
pub(crate) fn text(
    server: &str,
    tool: &Tool,
    result: CallToolResult,
) -> Result<String, ServerError> {
    let name = tool.program.name().as_str();
    if result.is_error == Some(true) {
        let text = joined(&result.content);
        let text = if text.is_empty() { "it gives no reason".to_owned() } else { text };
        return Err(ServerError::tool(server, name, &text));
    }
    match (&tool.output, result.structured_content) {
        (Some(schema), Some(value)) => match schema.faults(&value, MAX_FAULTS) {
            faults if faults.is_empty() => Ok(value.to_string()),
            faults => Err(ServerError::result(server, name, &faults.join("; "))),
        },
        (Some(_), None) => Err(ServerError::result(server, name, "it has no structured content")),
        (None, Some(value)) if result.content.is_empty() => Ok(value.to_string()),
        (None, _) => Ok(joined(&result.content)),
    }
}

/// Returns the texts of content blocks, one below the other. Data that is no text is named with its
/// type and size.
pub(crate) fn joined(content: &[ContentBlock]) -> String {
    let texts: Vec<String> = content.iter().map(block).collect();
    texts.join("\n")
}

fn block(block: &ContentBlock) -> String {
    match block {
        ContentBlock::Text(text) => text.text.clone(),
        ContentBlock::Image(image) => data("image", &image.mime_type, &image.data),
        ContentBlock::Audio(audio) => data("audio", &audio.mime_type, &audio.data),
        ContentBlock::Resource(resource) => contents(&resource.resource),
        ContentBlock::ResourceLink(link) => format!("[resource {} {}]", link.name, link.uri),
        _ => "[content of an unknown type]".to_owned(),
    }
}

/// Returns the text of a resource's contents.
pub(crate) fn contents(contents: &ResourceContents) -> String {
    match contents {
        ResourceContents::TextResourceContents { text, .. } => text.clone(),
        ResourceContents::BlobResourceContents { uri, mime_type, blob, .. } => {
            data(uri, mime_type.as_deref().unwrap_or("data"), blob)
        }
        _ => "[content of an unknown type]".to_owned(),
    }
}

/// Describes data in base64.
fn data(what: &str, kind: &str, base64: &str) -> String {
    format!("[{what} {kind}, {} bytes]", base64.len() / 4 * 3)
}
