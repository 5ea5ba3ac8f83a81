out(str(kv_incr(args[0], int(args[1]))))
