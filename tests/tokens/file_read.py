with open(args[0], newline="") as file:
    out(file.read())
