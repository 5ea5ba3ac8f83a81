(let $c (yaml (get_config)))
(each $name (sort (keys $c.services))
  (out $name (at $c "services" $name "port")))
(out (sum (values $c.services) by "replicas"))
