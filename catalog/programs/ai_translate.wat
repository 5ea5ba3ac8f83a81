;;; name = "ai_translate"
;;; description = "Translate a text into another language"
;;; returns = "the translation"
;;; uses = ["ai"]
;;; tags = ["language", "model"]
;;; [[args]]
;;; name = "text"
;;; type_hint = "string"
;;; description = "The text"
;;; [[args]]
;;; name = "language"
;;; type_hint = "string"
;;; description = "The language to translate into, such as German"
;;; [[example]]
;;; args = ["Good morning", "French"]
;;; ai = [{ when = "into French", reply = "Bonjour" }]
;;; results = ["Bonjour"]
;;; [[example]]
;;; args = [" ", "French"]
;;; code = "EBOUND"
;;; reason = "there is no text to translate"
;;; results = []

(let $text (arg 0))
(when (= (str.trim $text) "") (fail EBOUND "there is no text to translate"))
(ret
  (ai.assist $text
    (fmt
      "Translate the text into {}. Keep its layout. Answer with the translation alone."
      (arg 1))))
