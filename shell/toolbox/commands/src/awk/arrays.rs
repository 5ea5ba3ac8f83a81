//! Infers which function parameters are arrays, based on how the function bodies use them.

use super::syntax::{
    ArrayName, Expr, Function, Place, Program, Source, Statement, Target, Variable,
};

/// Marks the array parameters of all functions. Repeats until a pass marks no more parameters.
pub(crate) fn infer(program: &mut Program) {
    loop {
        let mut marks = Vec::new();
        for (number, function) in program.functions.iter().enumerate() {
            let mut look = Look { functions: &program.functions, number, marks: &mut marks };
            look.statements(&function.body);
        }
        let mut changed = false;
        for (function, param) in marks {
            if let Some(mark) = program
                .functions
                .get_mut(function)
                .and_then(|function| function.arrays.get_mut(param))
            {
                changed |= !*mark;
                *mark = true;
            }
        }
        if !changed {
            return;
        }
    }
}

struct Look<'a> {
    functions: &'a [Function],
    number: usize,
    marks: &'a mut Vec<(usize, usize)>,
}

impl Look<'_> {
    fn mark(&mut self, variable: Variable) {
        if let Variable::Local(param) = variable {
            self.marks.push((self.number, param));
        }
    }

    fn array(&mut self, array: &ArrayName) {
        match array {
            ArrayName::Variable(variable) => self.mark(*variable),
            ArrayName::Element(array, keys) => {
                self.array(array);
                self.exprs(keys);
            }
        }
    }

    fn statements(&mut self, body: &[Statement]) {
        body.iter().for_each(|statement| self.statement(statement));
    }

    fn statement(&mut self, statement: &Statement) {
        match statement {
            Statement::Expr(expr) => self.expr(expr),
            Statement::Print(values, target) | Statement::Printf(values, target) => {
                self.exprs(values);
                if let Some(Target::File(to) | Target::Append(to) | Target::Command(to)) = target {
                    self.expr(to);
                }
            }
            Statement::If(condition, then, other) => {
                self.expr(condition);
                self.statement(then);
                other.iter().for_each(|other| self.statement(other));
            }
            Statement::While(condition, body) | Statement::Do(body, condition) => {
                self.expr(condition);
                self.statement(body);
            }
            Statement::For(start, condition, step, body) => {
                start.iter().chain(step).for_each(|statement| self.statement(statement));
                condition.iter().for_each(|condition| self.expr(condition));
                self.statement(body);
            }
            Statement::Each(_, array, body) => {
                self.array(array);
                self.statement(body);
            }
            Statement::Switch(value, cases) => {
                self.expr(value);
                for (value, body) in cases {
                    value.iter().for_each(|value| self.expr(value));
                    self.statements(body);
                }
            }
            Statement::Block(body) => self.statements(body),
            Statement::Delete(array, keys) => {
                self.array(array);
                keys.iter().for_each(|keys| self.exprs(keys));
            }
            Statement::Exit(value) | Statement::Return(value) => {
                value.iter().for_each(|value| self.expr(value))
            }
            Statement::Next | Statement::NextFile | Statement::Break | Statement::Continue => {}
        }
    }

    fn exprs(&mut self, exprs: &[Expr]) {
        exprs.iter().for_each(|expr| self.expr(expr));
    }

    fn place(&mut self, place: &Place) {
        match place {
            Place::Variable(_) => {}
            Place::Field(number) => self.expr(number),
            Place::Element(array, keys) => {
                self.array(array);
                self.exprs(keys);
            }
        }
    }

    fn expr(&mut self, expr: &Expr) {
        match expr {
            Expr::Number(_) | Expr::Text(_) | Expr::Regex(_) | Expr::TypedRegex(_) => {}
            Expr::Read(place) | Expr::Step(place, ..) => self.place(place),
            Expr::Assign(place, value) | Expr::Update(_, place, value) => {
                self.place(place);
                self.expr(value);
            }
            Expr::Choice(condition, yes, no) => {
                [condition, yes, no].into_iter().for_each(|expr| self.expr(expr))
            }
            Expr::And(left, right) | Expr::Or(left, right) | Expr::Join(left, right) => {
                [left, right].into_iter().for_each(|expr| self.expr(expr))
            }
            Expr::Arithmetic(_, left, right)
            | Expr::Compare(_, left, right)
            | Expr::Matches(left, right, _) => {
                [left, right].into_iter().for_each(|expr| self.expr(expr));
            }
            Expr::Not(inner) | Expr::Negative(inner) | Expr::Positive(inner) => self.expr(inner),
            Expr::Within(keys, array) => {
                self.array(array);
                self.exprs(keys);
            }
            Expr::Group(items) | Expr::Indirect(_, items) => self.exprs(items),
            Expr::Call(function, args) => {
                self.exprs(args);
                let arrays = self
                    .functions
                    .get(*function)
                    .map(|function| function.arrays.as_slice())
                    .unwrap_or_default();
                for (arg, _) in args.iter().zip(arrays).filter(|(_, array)| **array) {
                    if let Expr::Read(Place::Variable(variable)) = arg {
                        self.mark(*variable);
                    }
                }
            }
            Expr::Builtin(name, args) => {
                self.exprs(args);
                for place in array_arguments(name) {
                    if let Some(Expr::Read(Place::Variable(variable))) = args.get(*place) {
                        self.mark(*variable);
                    }
                }
            }
            Expr::Getline(source, place) => {
                place.iter().for_each(|place| self.place(place));
                if let Source::File(from) | Source::Command(from) = source {
                    self.expr(from);
                }
            }
        }
    }
}

/// Returns the indexes of the array arguments of a built-in function.
pub(crate) fn array_arguments(name: &str) -> &'static [usize] {
    match name {
        "split" | "patsplit" => &[1, 3],
        "match" => &[2],
        "asort" | "asorti" => &[0, 1],
        _ => &[],
    }
}
