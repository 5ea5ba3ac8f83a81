(ret (sum (str.find_all (str (pow (big 3) 300)) r"\d") by (fn ($d) (int $d))))
