import json

out(json.dumps(http_get_all(args[0].split())))
