//! Tests of searches for built-in programs. The queries are phrased like those of a user who does
//! not know the programs' names.

use wattle_catalog::Catalog;

#[test]
fn the_intended_program_is_ranked_first() {
    let catalog = Catalog::built_in();
    for (words, expected) in [
        ("http_get", "http_get"),
        ("kv set", "kv_set"),
        ("find a file by its name", "file_find"),
        ("how many words does this text have?", "text_count"),
        ("summarizing a file", "ai_summarize_file"),
        ("download", "http_download"),
        ("column of a csv", "csv_column"),
        ("grep", "file_grep"),
        ("delete a file", "file_delete"),
        ("links on a page", "web_links"),
    ] {
        let found: Vec<&str> =
            catalog.search(words).iter().map(|entry| entry.name().as_str()).collect();
        assert_eq!(found.first(), Some(&expected), "{words}: {found:?}");
    }
    assert!(catalog.search("zymurgy").is_empty());
    assert!(catalog.search("").is_empty());
}

#[test]
fn a_long_message_is_a_valid_question() {
    let catalog = Catalog::built_in();
    let message = format!(
        "Please download https://example.org/data.csv. {}",
        "Thank you! 🌿 ".repeat(50_000)
    );
    let found = catalog.search(&message);
    assert!(found.iter().take(5).any(|entry| entry.name().as_str() == "http_download"));
    assert_eq!(found.len(), catalog.search(&message).len());
}
