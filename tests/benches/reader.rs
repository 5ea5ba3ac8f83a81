//! Measures the throughput of the answer reader on typical answers and on noise, which contains
//! many incomplete calls.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use wattle_machine::read;

fn answers() -> Vec<(&'static str, String)> {
    let body = "(call $http.get (local.get $url)) ;; fetch\n(local.set $err) (local.set \
                $page)\n(check $err)\n"
        .repeat(20);
    let wat = format!(
        "<reasoning>First fetch the page, then count.</reasoning>\n\
         ToolCall::Wat(```wat\n{body}(i32.const 0)\n```, \"https://example.com/\")"
    );
    let response = format!(
        "ToolCall::Response(\"\"\"\n{}\"\"\")",
        "A paragraph of the final answer, with \"quotes\" and (brackets).\n".repeat(40)
    );
    let noise = "ToolCall::Wat ( ``` \"\"\" <think> ) ( ".repeat(28_000);
    vec![("a program", wat), ("an answer", response), ("a megabyte of noise", noise)]
}

fn reader(c: &mut Criterion) {
    let mut group = c.benchmark_group("read");
    for (name, answer) in answers() {
        group.throughput(Throughput::Bytes(answer.len() as u64));
        group.bench_function(name, |b| b.iter(|| black_box(read(black_box(&answer)))));
    }
    group.finish();
}

criterion_group!(benches, reader);
criterion_main!(benches);
