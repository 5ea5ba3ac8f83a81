(let $doc (fs.read "config.json"))
(fn $child ($path $key)
  (cond
    ((= (len (str.match $key r"^[\w-]+$")) 0) (return (fmt "{}[\"{}\"]" $path $key)))
    ((= $path "") (return $key))
    (else (return (fmt "{}.{}" $path $key)))))
(fn $walk ($path)
  (let $type (json.type $doc $path))
  (cond
    ((= $type "object")
      (each $k (json.keys $doc $path)
        ($walk ($child $path $k))))
    ((= $type "array")
      (for $i 0 (json.len $doc $path)
        ($walk (fmt "{}[{}]" $path $i))))
    (else
      (out (fmt "{}={}" $path (json.get $doc $path))))))
($walk "")
