;;; name = "table_maximum"
;;; description = "Find the largest city in the table of a web page"
;;; returns = "its name and its number of inhabitants"
;;; [[args]]
;;; name = "url"
;;; type_hint = "url"
;;; description = "A page with a table with the columns City and Inhabitants"
;;; [[example]]
;;; args = ["https://a.example/cities"]
;;; http = [{ url = "https://a.example/cities", body = "<h1>Cities</h1><table><tr><th>City</th><th>Inhabitants</th></tr><tr><td>Oslo</td><td>717710</td></tr><tr><td>Bergen</td><td>291940</td></tr><tr><td>Riga</td><td>1605000</td></tr></table>" }]
;;; results = ["Riga 1605000"]
;;; [[example]]
;;; args = ["https://a.example/cities"]
;;; http = [{ url = "https://a.example/cities", status = 500 }]
;;; code = "EREMOTE"

(let $city (max (html.table (http.get (arg 0))) by (fn ($row) (num $row.Inhabitants))))
(out $city.City $city.Inhabitants)
