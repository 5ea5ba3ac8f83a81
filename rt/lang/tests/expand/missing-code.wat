(argv 0 $p)
(resv $p)
