;;; name = "publish"
;;; description = "Copy the files below content/ and blog/ to the public folder"
;;; returns = "the files that are new there"
;;; uses = ["publish"]
;;; tags = ["site", "web", "blog", "public"]
;;; [[example]]
;;; args = []
;;; files = { "blog/first.md" = "hello", "content/index.html" = "<h1>hi</h1>", "draft.md" = "not yet" }
;;; results = ["published 2 files (16 bytes): content/index.html, blog/first.md"]
;;; [[example]]
;;; args = []
;;; files = { "draft.md" = "not yet" }
;;; results = ["nothing to publish: there are no files below content/ or blog/"]

(ret (publish.run?))
