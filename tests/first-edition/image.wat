;;; name = "image"
;;; description = "Make a picture of a prompt and write it to a file; at most two per run"
;;; returns = "the file with its size and kind"
;;; uses = ["image"]
;;; tags = ["picture", "banner", "draw", "illustration"]
;;; [[args]]
;;; name = "prompt"
;;; type_hint = "string"
;;; description = "What the picture shows"
;;; [[args]]
;;; name = "path"
;;; type_hint = "path"
;;; description = "The file to write; its suffix is the kind: .png, .jpg, .webp or .gif"
;;; [[example]]
;;; args = ["a lighthouse at dawn", "content/banner.png"]
;;; results = ["wrote content/banner.png (67 bytes, PNG)"]
;;; [[example]]
;;; args = ["a lighthouse at dawn", "../banner.png"]
;;; code = "EACCESS"
;;; results = []

(ret (image.make? (arg 0) (arg 1)))
