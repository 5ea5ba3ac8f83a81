;;; name = "yaml_result"
;;; description = "List the services that run fewer copies than they should"
;;; returns = "one line for each service"
;;; [[args]]
;;; name = "path"
;;; type_hint = "path"
;;; description = "A YAML file, a list of services: name, wanted, running"
;;; [[example]]
;;; args = ["services.yaml"]
;;; files = { "services.yaml" = "- name: web\n  wanted: 3\n  running: 1\n- name: db\n  wanted: 1\n  running: 1\n- name: mail\n  wanted: 2\n  running: 0\n" }
;;; results = ["web: 1 of 3", "mail: 0 of 2"]

(each $s (yaml (fs.read (arg 0)))
  (when (< $s.running $s.wanted) (out "{}: {} of {}" $s.name $s.running $s.wanted)))
