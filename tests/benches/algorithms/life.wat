(local $old i32)
(local $new i32)
(local $swap i32)
(local $r i32)
(local $c i32)
(local $p i32)
(local $q i32)
(local $near i32)
(local $generation i32)
(local.set $old (call $sys.alloc (i32.const 40804)))
(local.set $new (call $sys.alloc (i32.const 40804)))
(loop $rows
  (local.set $c (i32.const 0))
  (loop $columns
    (i32.store8
      (i32.add
        (local.get $old)
        (i32.add
          (i32.mul (i32.const 202) (i32.add (local.get $r) (i32.const 1)))
          (i32.add (local.get $c) (i32.const 1))))
      (i32.lt_s
        (i32.rem_s
          (i32.add
            (i32.mul (local.get $r) (local.get $r))
            (i32.mul (i32.const 3) (local.get $c)))
          (i32.const 7))
        (i32.const 3)))
    (local.set $c (i32.add (local.get $c) (i32.const 1)))
    (br_if $columns (i32.lt_s (local.get $c) (i32.const 200))))
  (local.set $r (i32.add (local.get $r) (i32.const 1)))
  (br_if $rows (i32.lt_s (local.get $r) (i32.const 200))))
(loop $generations
  (local.set $r (i32.const 1))
  (loop $rows
    (local.set $p
      (i32.add
        (local.get $old)
        (i32.add (i32.mul (i32.const 202) (local.get $r)) (i32.const 1))))
    (local.set $q
      (i32.add (local.get $new) (i32.sub (local.get $p) (local.get $old))))
    (local.set $c (i32.const 1))
    (loop $columns
      ;; An offset is not negative, so the first neighbour is the base of all.
      (local.set $swap (i32.sub (local.get $p) (i32.const 203)))
      (local.set $near
        (i32.add
          (i32.add
            (i32.add
              (i32.load8_u (local.get $swap))
              (i32.load8_u offset=1 (local.get $swap)))
            (i32.add
              (i32.load8_u offset=2 (local.get $swap))
              (i32.load8_u offset=202 (local.get $swap))))
          (i32.add
            (i32.add
              (i32.load8_u offset=204 (local.get $swap))
              (i32.load8_u offset=404 (local.get $swap)))
            (i32.add
              (i32.load8_u offset=405 (local.get $swap))
              (i32.load8_u offset=406 (local.get $swap))))))
      (i32.store8
        (local.get $q)
        (i32.or
          (i32.eq (local.get $near) (i32.const 3))
          (i32.and
            (i32.eq (local.get $near) (i32.const 2))
            (i32.load8_u (local.get $p)))))
      (local.set $p (i32.add (local.get $p) (i32.const 1)))
      (local.set $q (i32.add (local.get $q) (i32.const 1)))
      (local.set $c (i32.add (local.get $c) (i32.const 1)))
      (br_if $columns (i32.le_s (local.get $c) (i32.const 200))))
    (local.set $r (i32.add (local.get $r) (i32.const 1)))
    (br_if $rows (i32.le_s (local.get $r) (i32.const 200))))
  (local.set $swap (local.get $old))
  (local.set $old (local.get $new))
  (local.set $new (local.get $swap))
  (local.set $generation (i32.add (local.get $generation) (i32.const 1)))
  (br_if $generations (i32.lt_s (local.get $generation) (i32.const 100))))
(local.set $near (i32.const 0))
(local.set $c (i32.const 0))
(loop $cells
  (local.set $near
    (i32.add
      (local.get $near)
      (i32.load8_u (i32.add (local.get $old) (local.get $c)))))
  (local.set $c (i32.add (local.get $c) (i32.const 1)))
  (br_if $cells (i32.lt_s (local.get $c) (i32.const 40804))))
(call $sys.resv (call $str.from_int (local.get $near)))
(i32.const 0)
