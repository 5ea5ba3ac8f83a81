;;; name = "get_config"
;;; description = "Returns the configuration as YAML."
;;; returns = "YAML"
(out """services:
  web:
    port: 8080
    replicas: 3
  api:
    port: 9000
    replicas: 2
  db:
    port: 5432
    replicas: 1""")
