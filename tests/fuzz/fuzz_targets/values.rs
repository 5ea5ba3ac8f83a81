//! Parses arbitrary text as a value, and works on its parts. The parser must accept what another
//! parser of JSON accepts, with the same result; comparisons must agree with jq; changes of lists and
//! objects must agree with a model of shared references. No program may fail in another way than by an
//! error of its last host call.
#![no_main]

#[path = "../../../capability/tests/capability/world.rs"]
mod world;

use std::cmp::Ordering;
use std::sync::LazyLock;

use serde_json::Value as Json;
use tokio::runtime::{Builder, Runtime};
use wattle_rt::{Code, Exit, Outcome, TrapKind};
use world::World;

static TOKIO: LazyLock<Runtime> = LazyLock::new(|| {
    Builder::new_current_thread().enable_all().start_paused(true).build().unwrap()
});
static WORLD: LazyLock<World> = LazyLock::new(World::new);

/// Programs that get a text and a second text. Each returns the text of a value.
const PROGRAMS: &[&str] = &[
    "(ret (val.text (val.part (val.parse (arg 0)) (val.of_str (arg 1)))))",
    "(ret (val.text (val.part (val.nth (val.parse (arg 0)) 0) (val.nth_key (val.parse (arg 1)) 0))))",
    "(ret (val.text (val.add (val.parse (arg 0)) (val.parse (arg 1)))))",
    "(ret (val.text (val.mul (val.num (val.of_str (arg 0))) (val.num (val.of_str (arg 1))))))",
    "(ret (val.text (val.div (val.parse (arg 0)) (val.parse (arg 1)))))",
    "(ret (val.text (val.rem (val.big (val.of_str (arg 0))) (val.parse (arg 1)))))",
    "(ret (val.text (val.pow (val.parse (arg 0)) (val.parse (arg 1)))))",
    "(ret (fmt \"{i}\" (val.int (val.parse (arg 0)) \"fmt\")))",
    "(ret (str.from_float (val.float (val.parse (arg 0)) \"fmt\")))",
    "(ret (val.str (val.parse (arg 0)) \"fmt\"))",
    "(ret (val.text (val.sort (val.parse (arg 0)) (i32.const 0) (i32.const 1))))",
    "(ret (val.text (val.sum (val.flat (val.parse (arg 0))))))",
    "(ret (val.text (val.group (val.parse (arg 0)) (val.parse (arg 0)))))",
    "(ret (val.text (val.uniq (val.parse (arg 0)) (i32.const 0))))",
    "(ret (val.text (val.merge (val.parse (arg 0)) (val.parse (arg 1)))))",
    "(ret (val.format (val.parse (arg 0)) (arg 1)))",
    "(ret (val.text (val.csv (arg 0) (arg 1) (i32.const 1))))",
    "(ret (val.csv_text (val.parse (arg 0))))",
    "(ret (val.text (val.yaml (arg 0))))",
    "(ret (val.text (val.toml (arg 0))))",
    "(ret (val.text (val.xml (arg 0))))",
    "(ret (val.text (val.html_table (arg 0) 0)))",
    "(ret (fmt \"{i}\" (val.to_int (val.parse (arg 0)))))",
    "(ret (str.from_float (val.to_float (val.parse (arg 0)))))",
    "(ret (val.text (val.round (val.parse (arg 0)) (val.int (val.parse (arg 1)) \"round\"))))",
    "(ret (val.text (val.percentile (val.parse (arg 0)) (val.float (val.parse (arg 1)) \"fmt\"))))",
    "(let $v (val.parse (arg 0))) (val.put $v (val.parse (arg 1)) $v) (ret (val.text $v))",
];

/// Programs that use two numbers as handles, which may refer to no value.
const FORGED: &[&str] = &[
    "(ret (val.text (i32.add (int (arg 0)) (i32.const 0))))",
    "(ret (val.text (val.part (i32.add (int (arg 0)) (i32.const 0)) (i32.add (int (arg 1)) (i32.const 0)))))",
    "(let $v (val.list)) (val.push $v (i32.add (int (arg 0)) (i32.const 0))) (ret (val.text $v))",
    "(ret (val.text (val.sort (i32.add (int (arg 0)) (i32.const 0)) (i32.add (int (arg 1)) (i32.const 0)) (i32.const 0))))",
    "(ret (val.text (val.add (i32.add (int (arg 0)) (i32.const 0)) (i32.add (int (arg 1)) (i32.const 0)))))",
    "(ret (val.text (val.merge (i32.add (int (arg 0)) (i32.const 0)) (i32.add (int (arg 1)) (i32.const 0)))))",
];

/// Changes a list of eight values, as [`Model::change`] does. Each change is a list of four numbers.
const CHANGES: &str = r#"
(let $r (list (json (arg 0)) (list) (obj) null 7 "k1" (list 1 2) (obj "k0" 1)))
(each $o (json (arg 1))
  (let $x (at $r $o.1) $y (at $r $o.2) $n (int $o.3))
  (let $key (str "k" $n))
  (let $k (int $o.0))
  (cond
    ((= $k 0) (catch $e (val.push $x $y)))
    ((= $k 1) (put $r $o.2 (default (val.pop $x) null)))
    ((= $k 2) (catch $e (val.put $x $key $y)))
    ((= $k 3) (catch $e (val.put $x $n $y)))
    ((= $k 4) (catch $e (val.remove $x $key)))
    ((= $k 5) (catch $e (val.remove $x $n)))
    ((= $k 6) (put $r $o.2 (default (val.part $x $n) null)))
    ((= $k 7) (put $r $o.2 (default (val.part $x $key) null)))
    ((= $k 8) (put $r $o.2 (list)))
    ((= $k 9) (put $r $o.2 (obj)))
    ((= $k 10) (put $r $o.2 (default (val.copy $x) null)))
    ((= $k 11) (put $r $o.2 (default (val.merge $x $y) null)))
    ((= $k 12) (put $r $o.2 (default (val.concat $x $y) null)))
    ((= $k 13) (put $r $o.2 (default (val.keys $x) null)))
    ((= $k 14) (put $r $o.2 (default (val.reverse $x) null)))
    (else (catch $e (val.put $x (list $key "k0") $y)))))
(ret (json.text $r))
"#;

/// The number of values that one step of the model may visit. Larger ones are not compared.
const MAX_VISITED: usize = 10_000;
/// The nesting below which no function fails.
const SAFE_DEPTH: usize = 100;

/// A value of the model. Lists and objects are shared by reference.
#[derive(Clone)]
enum Node {
    Scalar(Json),
    /// An index of [`Model::lists`].
    List(usize),
    /// An index of [`Model::objects`].
    Object(usize),
}

/// The lists and objects of the model. They may contain each other.
#[derive(Default)]
struct Model {
    lists: Vec<Vec<Node>>,
    objects: Vec<Vec<(String, Node)>>,
}

/// A value is too large or nested too deeply for the model.
struct TooLarge;

fn visit(visited: &mut usize, depth: usize) -> Result<(), TooLarge> {
    *visited += 1;
    if *visited > MAX_VISITED || depth > SAFE_DEPTH { Err(TooLarge) } else { Ok(()) }
}

impl Model {
    fn list(&mut self, items: Vec<Node>) -> Node {
        self.lists.push(items);
        Node::List(self.lists.len() - 1)
    }

    fn object(&mut self, entries: Vec<(String, Node)>) -> Node {
        self.objects.push(entries);
        Node::Object(self.objects.len() - 1)
    }

    fn of(&mut self, json: &Json) -> Node {
        match json {
            Json::Array(items) => {
                let items = items.iter().map(|item| self.of(item)).collect();
                self.list(items)
            }
            Json::Object(entries) => {
                let entries = entries.iter().map(|(key, value)| (key.clone(), self.of(value)));
                let entries = entries.collect();
                self.object(entries)
            }
            scalar => Node::Scalar(scalar.clone()),
        }
    }

    fn json(&self, node: &Node, visited: &mut usize, depth: usize) -> Result<Json, TooLarge> {
        visit(visited, depth)?;
        Ok(match node {
            Node::Scalar(json) => json.clone(),
            Node::List(at) => {
                let items = self.lists[*at].iter().map(|item| self.json(item, visited, depth + 1));
                Json::Array(items.collect::<Result<_, _>>()?)
            }
            Node::Object(at) => {
                let entries = self.objects[*at]
                    .iter()
                    .map(|(key, value)| Ok((key.clone(), self.json(value, visited, depth + 1)?)));
                Json::Object(entries.collect::<Result<_, _>>()?)
            }
        })
    }

    fn copy(&mut self, node: &Node, visited: &mut usize, depth: usize) -> Result<Node, TooLarge> {
        visit(visited, depth)?;
        Ok(match node {
            Node::Scalar(json) => Node::Scalar(json.clone()),
            Node::List(at) => {
                let mut items = self.lists[*at].clone();
                for item in &mut items {
                    *item = self.copy(item, visited, depth + 1)?;
                }
                self.list(items)
            }
            Node::Object(at) => {
                let mut entries = self.objects[*at].clone();
                for (_, value) in &mut entries {
                    *value = self.copy(value, visited, depth + 1)?;
                }
                self.object(entries)
            }
        })
    }

    fn merge(
        &mut self,
        one: &Node,
        other: &Node,
        visited: &mut usize,
        depth: usize,
    ) -> Result<Node, TooLarge> {
        visit(visited, depth)?;
        let (Node::Object(ours), Node::Object(theirs)) = (one, other) else {
            return Ok(other.clone());
        };
        let mut merged = self.objects[*ours].clone();
        for (key, value) in self.objects[*theirs].clone() {
            match merged.iter().position(|(own, _)| *own == key) {
                Some(at) => merged[at].1 = self.merge(&merged[at].1, &value, visited, depth + 1)?,
                None => merged.push((key, value)),
            }
        }
        Ok(self.object(merged))
    }

    fn get(&self, node: &Node, key: &str) -> Option<Node> {
        let Node::Object(at) = node else { return None };
        self.objects[*at].iter().find(|(own, _)| own == key).map(|(_, value)| value.clone())
    }

    fn set(&mut self, node: &Node, key: &str, new: Node) {
        let Node::Object(at) = node else { return };
        let entries = &mut self.objects[*at];
        match entries.iter_mut().find(|(own, _)| own == key) {
            Some((_, value)) => *value = new,
            None => entries.push((key.to_owned(), new)),
        }
    }

    fn remove(&mut self, node: &Node, key: &str) {
        let Node::Object(at) = node else { return };
        self.objects[*at].retain(|(own, _)| own != key);
    }

    /// Performs a change on the values of [`CHANGES`].
    fn change(&mut self, values: &mut [Node], [what, x, y, n]: [u8; 4]) -> Result<(), TooLarge> {
        let (to, n) = (usize::from(y), usize::from(n));
        let (x, y) = (values[usize::from(x)].clone(), values[to].clone());
        let (key, number) = (format!("k{n}"), n.to_string());
        let null = Node::Scalar(Json::Null);
        match (what, &x) {
            (0, Node::List(at)) => self.lists[*at].push(y),
            (1, Node::List(at)) => values[to] = self.lists[*at].pop().unwrap_or(null),
            (2, _) => self.set(&x, &key, y),
            (3, Node::List(at)) => {
                if let Some(item) = self.lists[*at].get_mut(n) {
                    *item = y;
                }
            }
            (3, _) => self.set(&x, &number, y),
            (4, _) => self.remove(&x, &key),
            (5, Node::List(at)) if n < self.lists[*at].len() => drop(self.lists[*at].remove(n)),
            (5, _) => self.remove(&x, &number),
            (6, Node::List(at)) => values[to] = self.lists[*at].get(n).cloned().unwrap_or(null),
            (6, _) => values[to] = self.get(&x, &number).unwrap_or(null),
            (7, _) => values[to] = self.get(&x, &key).unwrap_or(null),
            (8, _) => values[to] = self.list(Vec::new()),
            (9, _) => values[to] = self.object(Vec::new()),
            (10, _) => values[to] = self.copy(&x, &mut 0, 1)?,
            (11, Node::Object(_)) if matches!(y, Node::Object(_)) => {
                values[to] = self.merge(&x, &y, &mut 0, 1)?;
            }
            (12, Node::List(at)) if let Node::List(other) = y => {
                let joined = [self.lists[*at].as_slice(), &self.lists[other]].concat();
                values[to] = self.list(joined);
            }
            (13, Node::Object(at)) => {
                let keys =
                    self.objects[*at].iter().map(|(key, _)| Node::Scalar(key.as_str().into()));
                let keys = keys.collect();
                values[to] = self.list(keys);
            }
            (14, Node::List(at)) => {
                let reversed = self.lists[*at].iter().rev().cloned().collect();
                values[to] = self.list(reversed);
            }
            (15, _) => match self.get(&x, &key) {
                None | Some(Node::Scalar(Json::Null)) => {
                    let part = self.object(vec![("k0".to_owned(), y)]);
                    self.set(&x, &key, part);
                }
                Some(part) => self.set(&part, "k0", y),
            },
            (1 | 11..=14, _) => values[to] = null,
            _ => {}
        }
        Ok(())
    }
}

/// Compares the changes of a program with those of the model.
fn changes(text: &str, json: &Json, changes: &[[u8; 2]]) {
    let unpacked = changes.iter().take(80).map(|[a, b]| [a >> 4, a & 7, (b >> 4) & 7, b & 15]);
    let unpacked: Vec<[u8; 4]> = unpacked.collect();
    let mut model = Model::default();
    let others: Json =
        serde_json::from_str(r#"[[], {}, null, 7, "k1", [1, 2], {"k0": 1}]"#).unwrap();
    let others = others.as_array().into_iter().flatten();
    let mut values: Vec<Node> = [json].into_iter().chain(others).map(|v| model.of(v)).collect();
    let written = serde_json::to_string(&unpacked).unwrap();
    let found = result(CHANGES, &[text, &written]);
    for change in &unpacked {
        if model.change(&mut values, *change).is_err() {
            return;
        }
    }
    let root = model.list(values);
    let Ok(expected) = model.json(&root, &mut 0, 1) else { return };
    let found = found.unwrap_or_else(|| panic!("{written} of {text} failed"));
    let found: Json = serde_json::from_str(&found).unwrap();
    assert_eq!(found, expected, "{written} of {text}");
}

/// Compares two values of JSON, and asks jq, too.
fn compared(text: &str, other: &str, one: &Json, two: &Json) {
    let pair = format!("[{text},{other}]");
    let jq = |filter: &str| result("(ret (json.query (arg 0) (arg 1)))", &[&pair, filter]);
    let equal = "(ret (fmt \"{}\" (val.eq (val.parse (arg 0)) (val.parse (arg 1)))))";
    if let (Some(ours), Some(theirs)) = (result(equal, &[text, other]), jq(".[0] == .[1]")) {
        assert_eq!(ours == "1", theirs == "true", "{pair}");
    }
    let is_ordered = matches!(
        (one, two),
        (Json::Number(_), Json::Number(_)) | (Json::String(_), Json::String(_))
    );
    if is_ordered {
        let order = "(ret (fmt \"{}\" (val.cmp (val.parse (arg 0)) (val.parse (arg 1)))))";
        let ours = result(order, &[text, other]).unwrap();
        let filter = "if .[0] < .[1] then -1 elif .[0] == .[1] then 0 else 1 end";
        let theirs = jq(filter).unwrap_or_else(|| panic!("jq compares {pair}"));
        assert_eq!(ours, theirs, "{pair}");
        if let (Json::Number(one), Json::Number(two)) = (one, two)
            && let (Some(one), Some(two)) = (one.as_i64(), two.as_i64())
        {
            assert_eq!(ours, (one.cmp(&two) as Ordering as i8).to_string(), "{pair}");
        }
    }
}

fn run(program: &str, args: &[&str]) -> Outcome {
    TOKIO.block_on(WORLD.run(program, args)).unwrap_or_else(|why| panic!("{program}: {why}"))
}

/// Returns a program's result, or `None` if a host call failed.
fn result(program: &str, args: &[&str]) -> Option<String> {
    let outcome = run(program, args);
    match &outcome.exit {
        Exit::Returned(Code::SUCCESS) => Some(outcome.texts().concat()),
        Exit::Returned(_) => {
            assert!(outcome.failure.is_some(), "{program}: {:?}", outcome.exit);
            None
        }
        Exit::Trapped(trap) => {
            assert!(matches!(trap.kind, TrapKind::Host(_)), "{program}: {trap}");
            None
        }
    }
}

libfuzzer_sys::fuzz_target!(|input: (&str, &str, u8, [i32; 2], Vec<[u8; 2]>)| {
    let (text, other, which, handles, packed) = input;
    // Arguments of a program cannot contain the character 0.
    if text.contains('\0') || other.contains('\0') {
        return;
    }
    let parsed = result("(ret (val.text (val.parse (arg 0))))", &[text]);
    let repeats = || {
        let outcome = run("(ret (val.text (val.parse (arg 0))))", &[text]);
        outcome.failure.is_some_and(|failed| {
            let reason = &failed.failure.reason;
            reason.contains("is repeated") || reason.contains("nested deeper")
        })
    };
    let json = serde_json::from_str::<Json>(text);
    match (&json, &parsed) {
        (Ok(Json::String(text)), Some(parsed)) => assert_eq!(text, parsed),
        (Ok(json), Some(parsed)) => {
            assert_eq!(serde_json::from_str::<Json>(parsed).unwrap(), *json);
        }
        (Ok(_), None) => assert!(repeats(), "{text}"),
        (Err(_), _) => {}
    }
    // The JSON of a value is the JSON of the value that is parsed from it.
    if let Some(json) = result("(ret (val.json (val.parse (arg 0))))", &[text]) {
        assert_eq!(result("(ret (val.json (val.parse (arg 0))))", &[&json]), Some(json));
    }
    // The other checks take turns, since each runs several programs.
    let nth = usize::from(which / 4);
    match (which % 4, &json, &parsed) {
        (0, ..) => drop(result(PROGRAMS[nth % PROGRAMS.len()], &[text, other])),
        (1, ..) => {
            let [a, b] = handles.map(|handle| handle.to_string());
            result(FORGED[nth % FORGED.len()], &[&a, &b]);
        }
        (2, Ok(json), Some(_)) => changes(text, json, &packed),
        (3, Ok(json), Some(_)) => {
            if let Ok(two) = serde_json::from_str::<Json>(other) {
                compared(text, other, json, &two);
            }
        }
        _ => {}
    }
});
