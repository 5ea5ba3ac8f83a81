(argv 0 $path)
(call $fs.remove (local.get $path))
