(ret (join (map (filter (get_users) "active") "email") ", "))
