out("\n".join(kv_list(args[0])))
