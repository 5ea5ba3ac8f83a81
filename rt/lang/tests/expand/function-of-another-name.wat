(func $main (export "run")
  (resv "x"))
