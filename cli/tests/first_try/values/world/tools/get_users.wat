;;; name = "get_users"
;;; description = "Returns all users."
;;; result = "[{id, name, email, active}]"
;;; returns = "text"
(out """[{"id": 1, "name": "Ada", "email": "ada@x.org", "active": true}, {"id": 2, "name": "Bob", "email": "bob@x.org", "active": false}, {"id": 3, "name": "Cy", "email": "cy@x.org", "active": true}]""")
