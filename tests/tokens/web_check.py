dead = []
for answer in http_get_all(list(dict.fromkeys(args[0].split()))):
    if "code" in answer:
        dead.append(f"{answer.get('status', answer['code'])} {answer['url']}")
out("\n".join(dead) or "no link is dead")
