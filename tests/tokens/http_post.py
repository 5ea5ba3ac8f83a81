url, body, content_type = args
status, text = http_request("POST", url, {"content-type": content_type}, body)
if status >= 400:
    fail("EREMOTE", f"{url} answered status {status}\n{text}")
out(f"status {status}\n{text}" if text else f"status {status}")
