out(http_post(*args))
