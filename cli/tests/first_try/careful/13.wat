(let $total long 0)
(each $path (str.split (arg 0) " ")
  (when (= $path "") (continue))
  (let $info (default (fs.stat $path) ""))
  (cond
    ((= $info "")
      (out (fmt "missing: {}" $path)))
    (else
      (let $size (str.to_int (json.get $info "size")))
      (+= $total $size)
      (out (fmt "{} {}" $path $size)))))
(out (fmt "total {}" $total))
