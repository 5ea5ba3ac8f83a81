//! Tests that the authority of a program is complete: at run time, generated programs access only
//! the resources that their authority lists.

use std::fmt::Write;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use proptest::prelude::*;
use wattle_capability::egress::{Incoming, Outgoing, StatusCode};
use wattle_capability::http::{Backend, Http, Response};
use wattle_capability::{ALL, PortFuture, pure_grants};
use wattle_rt::{Argument, Authority, Limits, Part, Runtime};

/// A backend that records requests.
#[derive(Default)]
struct Web(Mutex<Vec<String>>);

impl Backend for Web {
    fn send(&self, request: Outgoing) -> PortFuture<'_, Incoming> {
        self.0.lock().unwrap().push(request.request().url.clone());
        let response =
            Response { status: StatusCode::OK, headers: Default::default(), body: "answer".into() };
        Box::pin(async move { Ok(request.answer(response)) })
    }
}

/// A generator of programs. Each choice consumes a byte of input.
struct Writer<'b> {
    choices: std::slice::Iter<'b, u8>,
    labels: usize,
    out: String,
}

impl Writer<'_> {
    fn choose(&mut self, of: u8) -> u8 {
        self.choices.next().map_or(0, |byte| byte % of)
    }

    fn condition(&mut self) -> &'static str {
        ["(call $sys.argc)", "(i32.const 0)", "(local.get $n)", "(i32.eqz (local.get $n))"]
            [usize::from(self.choose(4))]
    }

    fn text(&mut self, depth: u8) -> String {
        match self.choose(if depth == 0 { 5 } else { 10 }) {
            0 | 1 => format!("\"t{}\"", self.choose(4)),
            2 | 3 => format!("(local.get $x{})", self.choose(3)),
            4 => "(global.get $g)".to_owned(),
            5 => {
                let (condition, one, other) =
                    (self.condition(), self.text(depth - 1), self.text(depth - 1));
                format!("(select {one} {other} {condition})")
            }
            6 => format!("(i32.add {} (i32.const {}))", self.text(depth - 1), self.choose(8) * 4),
            7 => format!("(call $pick {} {})", self.text(depth - 1), self.text(depth - 1)),
            8 => format!(
                "(block $b{0} (result i32) (drop (br_if $b{0} {1} {2})) {3})",
                self.label(),
                self.text(depth - 1),
                self.condition(),
                self.text(depth - 1)
            ),
            _ => format!("(call $join {} {})", self.text(depth - 1), self.text(depth - 1)),
        }
    }

    fn label(&mut self) -> usize {
        self.labels += 1;
        self.labels
    }

    fn statements(&mut self, depth: u8) {
        for _ in 0..=self.choose(4) {
            self.statement(depth);
        }
    }

    fn statement(&mut self, depth: u8) {
        match self.choose(if depth == 0 { 8 } else { 12 }) {
            0..=2 => {
                let (local, text) = (self.choose(3), self.text(2));
                writeln!(self.out, "(local.set $x{local} {text})").unwrap();
            }
            3 | 4 => {
                let text = self.text(2);
                writeln!(self.out, "(drop (drop (call $http.get {text})))").unwrap();
            }
            5 => {
                let text = self.text(1);
                writeln!(self.out, "(call $fetch {text})").unwrap();
            }
            6 => {
                let text = self.text(1);
                writeln!(self.out, "(global.set $g {text})").unwrap();
            }
            7 if self.choose(4) == 0 => {
                let at = 1_024 + u32::from(self.choose(64));
                match self.choose(3) {
                    0 => writeln!(self.out, "(i32.store8 (local.get $x0) (i32.const 1))"),
                    1 => writeln!(
                        self.out,
                        "(i32.store8 (call $sys.alloc (i32.const 8)) (i32.const 1))"
                    ),
                    _ => writeln!(self.out, "(i32.store8 (i32.const {at}) (i32.const 2))"),
                }
                .unwrap();
            }
            8 | 9 => {
                let condition = self.condition();
                writeln!(self.out, "(if {condition} (then").unwrap();
                self.statements(depth - 1);
                self.out.push_str(") (else\n");
                self.statements(depth - 1);
                self.out.push_str("))\n");
            }
            10 | 11 => {
                let label = self.label();
                writeln!(
                    self.out,
                    "(local $c{label} i32) (local.set $c{label} (i32.const 0)) (loop $l{label}"
                )
                .unwrap();
                self.statements(depth - 1);
                writeln!(
                    self.out,
                    "(local.set $c{label} (i32.add (local.get $c{label}) (i32.const 1))) \
                     (local.set $n (local.get $c{label}))\n(br_if $l{label} (i32.lt_u (local.get \
                     $c{label}) (i32.const 3))))"
                )
                .unwrap();
            }
            _ => {}
        }
    }
}

/// Generates a program, including its helper functions, from the choices.
fn program(choices: &[u8]) -> String {
    let mut writer = Writer { choices: choices.iter(), labels: 0, out: String::new() };
    writer.statements(2);
    format!(
        "(global $g (mut i32) (i32.const 0))\n(func $join (param $a i32) (param $b i32) (result \
         i32) (local $p i32) (local $e i32)\n(call $str.cat (local.get $a) (local.get $b)) \
         (local.set $e) (local.set $p) (local.get $p))\n(func $pick (param $a i32) (param $b i32) \
         (result i32)\n(if (call $sys.argc) (then (return (local.get $b)))) (local.get \
         $a))\n(func $fetch (param $u i32) (drop (drop (call $http.get (local.get $u)))))\n(local \
         $n i32) (local $x0 i32) (local $x1 i32) (local $x2 i32) (local $e i32)\n(call $sys.argv \
         (i32.const 0)) (local.set $e) (local.set $x2)\n{}(i32.const 0)\n",
        writer.out
    )
}

/// Returns true if `text` is a possible value of the argument. An unknown argument can have any
/// value.
fn is_known(argument: &Argument, args: &[String], text: &str) -> bool {
    match argument {
        Argument::Unknown => true,
        Argument::OneOf(texts) => {
            texts.iter().filter_map(|known| known.with(args)).any(|known| fits(known.parts(), text))
        }
    }
}

fn fits(parts: &[Part], text: &str) -> bool {
    match parts {
        [] => text.is_empty(),
        [Part::Literal(literal), rest @ ..] => {
            text.strip_prefix(literal.as_str()).is_some_and(|text| fits(rest, text))
        }
        [_, rest @ ..] => {
            (0..=text.len()).filter_map(|at| text.get(at..)).any(|text| fits(rest, text))
        }
    }
}

fn is_declared(authority: &Authority, args: &[String], url: &str) -> bool {
    let mut gets = authority.uses().iter().filter(|one| one.function.module == "http");
    gets.any(|one| one.arguments.first().is_some_and(|argument| is_known(argument, args, url)))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn programs_reach_only_what_their_authority_lists(
        choices in prop::collection::vec(any::<u8>(), 0..160),
        with in any::<bool>(),
    ) {
        thread_local! {
            static WORLD: (Runtime, tokio::runtime::Runtime) = (
                Runtime::new(
                    ALL,
                    Limits { instances: 1, fuel: Some(2_000_000), ..Limits::default() },
                )
                .unwrap(),
                tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap(),
            );
        }
        let source = program(&choices);
        let args = if with { vec!["given".to_owned()] } else { Vec::new() };
        WORLD.with(|(runtime, tokio)| {
            let web = Arc::new(Web::default());
            let grants = Arc::new(pure_grants().with(Http::new(Arc::<Web>::clone(&web))));
            let program = tokio
                .block_on(runtime.prepare(&source))
                .unwrap_or_else(|why| panic!("{why}\n{source}"));
            tokio.block_on(runtime.run(&program, &grants, args.clone())).unwrap();
            for url in web.0.lock().unwrap().iter() {
                prop_assert!(
                    is_declared(program.authority(), &args, url),
                    "{url:?} is missing in the authority of\n{source}\n{:#?}",
                    program.authority()
                );
            }
            Ok(())
        })?;
    }
}

/// Covers growing strings, nested loops and thousands of locals. The analysis must give up and
/// treat every argument as unknown.
#[tokio::test]
async fn an_analysis_that_takes_too_long_gives_up() {
    let runtime = Runtime::new(ALL, Limits { instances: 1, ..Limits::default() }).unwrap();
    let mut many = String::new();
    for at in 0..2_000 {
        writeln!(many, "(local $v{at} i32) (local.set $v{at} \"https://a.example/\")").unwrap();
    }
    for _ in 0..1_000 {
        many.push_str("(if (call $sys.argc) (then (local.set $v0 (local.get $v1))))\n");
    }
    many.push_str("(drop (drop (call $http.get \"https://a.example/\")))\n(i32.const 0)");
    let mut deep = "(local $u i32)\n".to_owned();
    deep.push_str(&"(loop $l\n".repeat(200));
    deep.push_str(
        "(call $str.cat (local.get $u) (local.get $u)) (drop) (local.set $u) (drop (drop (call \
         $http.get (local.get $u))))\n",
    );
    deep.push_str(&"(br_if $l (call $sys.argc)))\n".repeat(200));
    deep.push_str("(i32.const 0)");
    for source in [many, deep] {
        let started = Instant::now();
        let program = runtime.prepare(&source).await.unwrap();
        let gets: Vec<_> =
            program.authority().uses().iter().filter(|one| one.function.module == "http").collect();
        assert_eq!(gets.len(), 1);
        assert_eq!(
            gets.iter().flat_map(|one| &one.arguments).collect::<Vec<_>>(),
            [&Argument::Unknown]
        );
        assert!(started.elapsed().as_secs() < 60);
    }
}
