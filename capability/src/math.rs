//! `math`: functions on floats.

use wattle_rt::{Failure, Run, capability};

capability! {
    /// Functions of floats (f64); results are floats, too.
    pub const MATH: "math" 1;

    /// Returns x to the power of y
    #[example = r#"(ret (str.from_float (math.pow 2 10) 0))"# => "1024"]
    #[prompt(name)]
    fn pow(x: float, y: float) -> z: float = pow;

    /// Returns the square root; NaN for a negative number
    #[example = r#"(ret (str.from_float (math.sqrt 2) 4))"# => "1.4142"]
    #[prompt(name)]
    fn sqrt(x: float) -> y: float = sqrt;

    /// Returns the largest whole number that is not above x
    #[example = r#"(ret (str.from_float (math.floor -2.5) 0))"# => "-3"]
    #[prompt(name)]
    fn floor(x: float) -> y: float = floor;

    /// Returns the smallest whole number that is not below x
    #[example = r#"(ret (str.from_float (math.ceil -2.5) 0))"# => "-2"]
    #[prompt(name)]
    fn ceil(x: float) -> y: float = ceil;

    /// Returns the nearest whole number; halves are rounded away from 0
    #[example = r#"(ret (str.from_float (math.round 2.5) 0))"# => "3"]
    #[prompt(name)]
    fn round(x: float) -> y: float = round;

    /// Returns the natural logarithm; NaN for a negative number
    #[example = r#"(ret (str.from_float (f64.div (math.log 1000) (math.log 10)) 4))"# => "3.0000"]
    #[prompt(name)]
    fn log(x: float) -> y: float = log;
}

fn pow(_: &mut Run, x: f64, y: f64) -> Result<f64, Failure> {
    Ok(x.powf(y))
}

fn sqrt(_: &mut Run, x: f64) -> Result<f64, Failure> {
    Ok(x.sqrt())
}

fn floor(_: &mut Run, x: f64) -> Result<f64, Failure> {
    Ok(x.floor())
}

fn ceil(_: &mut Run, x: f64) -> Result<f64, Failure> {
    Ok(x.ceil())
}

fn round(_: &mut Run, x: f64) -> Result<f64, Failure> {
    Ok(x.round())
}

fn log(_: &mut Run, x: f64) -> Result<f64, Failure> {
    Ok(x.ln())
}
