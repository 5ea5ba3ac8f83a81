(block $out (result i32)
  (br_if $out (i32.const 3) (i32.const 1))
  (drop)
  (i32.const 0))
