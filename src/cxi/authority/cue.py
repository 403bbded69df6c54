"""Which words turn a clause of a request into something that is not asked for?

- The tables are closed and lowercase; `authority.request` says what each kind does to its clause.
- English first, and the commonest cues of German, French, Spanish, Italian, Portuguese and Dutch. A word that negates in one
  language and means something else in another (`pas`, `no`) counts as negating: the request can be worded again.
- A cue is a whole word; `no-reply@x.example` and `not/a/path` hold none.
"""

from __future__ import annotations

from typing import Final


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _phrases(*texts: str) -> frozenset[tuple[str, ...]]:
    return frozenset(tuple(text.split()) for text in texts)


# --- negation. After a coordinator these begin a clause of their own ("fix a.py and don't touch b.py").
NEGATORS: Final = _words(
    "not never no none nothing neither nor nobody nowhere cannot ain't dont doesnt didnt cant wont shouldnt mustnt"
    " wouldnt couldnt isnt"
    " arent avoid avoids avoiding avoided ignore ignores ignoring ignored skip skips skipping skipped stop stops"
    " stopping refrain refrains"
    " refraining forbid forbids forbidden prohibit prohibits prohibited disallow disallowed prevent prevents hardly"
    " untouched unchanged unmodified unedited unaltered intact taboo omit omits omitting omitted decline refuse"
    " nicht kein keine keinen keiner keines keinem nie niemals nichts weder vermeide vermeiden ignoriere ignorieren"
    " unverändert unberührt"
    " ne pas jamais aucun aucune ni évite évitez éviter ignorez inchangé inchangée"
    " nunca jamás evita evite evitar tampoco ningún ninguna nada ignora intacto intacta"
    " non mai né nessun nessuna nessuno evitare ignorare intatto invariato"
    " não nem nenhum nenhuma jamais ignore"
    " niet geen nooit noch vermijd negeer onveranderd ongemoeid"
    # Languages that are not read otherwise: their negation is known all the same, for a sentence may mix two.
    " ikke inte ikkje aldri aldrig ej nie nigdy nu niciodată nem soha nemoj nemojte nikdy nikada nikoli ei älä älkää ekki"
    " değil hayır asla jangan tidak bukan không đừng chớ huwag wag cha gan peidiwch mos ez nedirbk neměň nesahej"
    " preserve preserves preserving preserved spare read-only readonly"
)
NEGATED_PHRASES: Final = _phrases(
    "hands off",
    "hands away",
    "fingers off",
    "stay away",
    "steer clear",
    "keep away",
    "keep out",
    "keep off",
    "hold off",
    "off limits",
    "out of bounds",
    "leave out",
    "no longer",
    "by no means",
    "under no circumstances",
    "lay off",
    "back off",
    "stay as",
    "stays as",
    "must stay",
    "should stay",
    "has to stay",
    "have to stay",
    "remain as",
    "remains as",
    "must remain",
    "should remain",
    "stay put",
    "be bad",
    "be wrong",
    "be unwise",
    "be dangerous",
    "bad idea",
    "terrible idea",
    "a mistake",
    "stay the",
)
# --- negation that takes something out of what stands before it: it never leaves the left side as it was.
EXCEPTIONS: Final = _words(
    "except excepting excepted exempt exclude excludes excluding excluded without barring minus sans"
    " ohne außer ausser ausgenommen statt anstatt anstelle sauf excepté hormis sin excepto salvo menos senza tranne eccetto"
    " sem exceto zonder behalve uitgezonderd"
)
EXCEPTION_PHRASES: Final = _phrases(
    "as opposed to",
    "instead of", "rather than", "other than", "apart from", "aside from", "save for", "in place of", "in lieu of", "in spite of",
    "with the exception", "au lieu", "plutôt que", "à part", "en vez", "en lugar", "em vez", "em lugar", "invece di",
    "invece che", "al posto", "a parte", "a meno", "in plaats", "bis auf",
)  # fmt: skip
# "leave b.py alone", "keep b.py as is": the first word opens, one of the others anywhere behind it closes.
LEAVE: Final = _words("leave leaving keep keeping let lass lassen laisse laissez deja deje lascia deixe laat")
LEFT: Final = _words("alone untouched unchanged intact unmodified unedited be as-is out stehen ruhe tranquille quieto stare met")
LEFT_PHRASES: Final = _phrases(
    "as is", "as it", "as they", "as was", "the way", "in peace", "in ruhe", "tel quel", "tal cual", "wie es"
)  # fmt: skip
# "everything but a.py": with one of these before it, `but` takes out instead of going on.
UNIVERSALS: Final = _words("all every everything everyone anything any anyone anybody each none nothing nobody no entire whole")

# --- conditions: the whole sentence.
CONDITIONS: Final = _words(
    "if when whenever unless until till otherwise whether assuming supposing providing lest maybe perhaps wonder wondering"
    " hypothetically contingent depending"
    " wenn sobald sofern solange ob vielleicht andernfalls"
    " si lorsque quand sinon"
    " cuando quizás quizá"
    " se quando qualora altrimenti forse"
    " caso talvez"
    " wanneer indien zodra tenzij mits misschien anders"
)
CONDITION_PHRASES: Final = _phrases(
    "failing that", "event of", "event that",
    "in case", "as long as", "so long as", "as soon as", "in the event", "on condition", "or else", "by the time",
    "à moins", "dès que", "au cas", "a menos", "en caso", "a no ser", "a meno che", "nel caso", "se não", "em caso", "no caso",
    "with me", "ask me", "before you", "my go", "my approval", "my ok", "my okay",
    "provided that", "given that", "only once", "es sei", "im falle", "in het geval",
)  # fmt: skip

# "run it once", and not "once it ran"; "the provided file", and not "provided it ran".
ONE_TIME: Final = _words("and or per a more again daily")
GIVERS: Final = _words("as you i we is are was were")
# `after` begins a clause before one of these, or with one of those soon behind it: "after the tests pass", "after the header".
SUBJECTS: Final = _words("you we i it they he she everything everyone all someone somebody que che")
PREDICATES: Final = _words(
    "pass passes passed is are was were has have had fail fails failed succeed succeeds succeeded finish finishes finished"
    " complete completes completed land lands landed merge merges merged run runs ran approve approves approved say says said"
    " confirm confirms confirmed arrive arrives arrived end ends ended done will goes go gets get does did do can build builds"
    " built deploy deploys deployed"
)

# --- reported speech: the whole sentence.
REPORTS: Final = _words(
    "typed said says asks asked wants wanted wrote writes told tells claims claimed suggests suggested recommends"
    " recommended states stated"
    " mentions mentioned instructs instructed demands demanded insists insisted thinks believes proposes proposed"
    " quoth replied replies"
    " answered announced"
    " sagt sagte sagten schreibt schrieb meint meinte behauptet laut möchte bat bittet"
    " disait écrit selon prétend"
    " dice dijo escribió pide pidió según afirma"
    " scrive chiede secondo disse"
    " diz escreveu pede pediu segundo"
    " zegt zei schrijft schreef vraagt vroeg volgens beweert"
)
REPORT_PHRASES: Final = _phrases(
    "according to", "paste from", "pasted from", "copied from", "reported that", "reports that", "requested that",
    "requests that", "d'après", "ha detto",
)  # fmt: skip

# --- questions.
INTERROGATIVES: Final = _words(
    "what what's why which where where's who who's whom whose how how's is are was were am does did has had should"
    " shall may might"
    " isn't aren't wasn't doesn't didn't hasn't shouldn't"
    " was warum wieso weshalb welche welcher welches wer wie wo"
    " pourquoi quel quelle quels quelles qui est-ce"
    " qué cuál cuáles dónde quién cómo cuándo"
    " perché quale quali cosa"
    " quem qual quais onde"
    " waarom welk welke hoe"
)
MODALS: Final = _words("can could would will do have")
ASKED_OF: Final = _words(
    "i we he she it they this that these those the a an my our your there anyone anybody somebody someone you"
)
NO_ERRAND: Final = _words(
    "say think consider recommend suggest expect believe know guess want like prefer need have be been being see agree advise"
    " i we he she it they the a an this that there not"
)  # "would you say …?" asks for no act
POLITE: Final = _words("please kindly also then just now maybe possibly quickly bitte")
POLITE_OPENERS: Final = _phrases(
    "can you", "could you", "would you", "will you", "can u", "could u", "would you mind", "do you mind",
    "kannst du", "könntest du", "können sie", "könnten sie", "würdest du", "würden sie",
    "peux-tu", "pouvez-vous", "pourrais-tu", "pourriez-vous",
    "puedes", "podrías", "podría", "puede", "puoi", "potresti", "può", "potrebbe", "pode", "podes", "poderia",
    "kun je", "kunt u", "kan je", "zou je", "zou u",
)  # fmt: skip

# --- directives. Only a clause that asks for something gives authority: it begins with one of these, or with what leads to one.
IMPERATIVES: Final = _words(
    " accept add adjust align allow amend annotate answer append apply approve archive arrange ask assign attach back"
    " backport backup begin bind block book bring build bump buy calculate call cancel capture change check"
    " cherry-pick choose clean clear clone close collect combine comment commit compare compile complete compress"
    " compute configure confirm connect continue convert copy correct create cut deal debug decrease define delete"
    " deliver deploy deposit describe design detach develop disable dispatch display document double-check download"
    " draft draw drop duplicate edit eliminate email enable end ensure enter erase evaluate execute expand explain"
    " export extend extract feed fetch fill filter find finish fix flag flatten follow fork format forward gather"
    " generate get give go grab grant group hand handle harden help hook implement import improve include increase"
    " index inform insert inspect install integrate introduce investigate invite issue join label land launch"
    " lift link lint list load locate lock log look mail make mark measure merge message migrate minimize modernize"
    " modify monitor move mute name normalize note notify open optimize order organize overwrite pack package parse"
    " paste patch pay perform pick pin plan polish port post prepare print proceed process produce promote proofread"
    " propose provide publish pull purchase purge push put queue raise rank rate re-run read rebase rebuild receive"
    " record recover redact redo reduce refactor refresh refund register release reload remind remove rename render"
    " renew rent reopen reorder repair repeat replace reply report request rerun reschedule reserve reset resolve"
    " respond restart restore restructure retry return revert review revise rewind rewrite ring roll rollback rotate"
    " round run save scan schedule search select sell send separate set settle share shift ship shorten show shut"
    " sign simplify solve sort spell split squash stage stamp star start steer stop store strip submit sum summarise"
    " summarize swap switch sync tag take tell test tidy tighten total trace touch track transfer transform translate"
    " trigger trim truncate try tune turn tweak type unarchive undo unify uninstall unlock unmute unpack unstage"
    " unstar update upgrade upload use validate verify view visit wipe wire withdraw work wrap write zip"
    # German, French, Spanish, Italian, Portuguese, Dutch
    " ändere schreibe schreib aktualisiere lösche verschiebe kopiere benenne schicke schick sende füge repariere"
    " behebe erstelle öffne schließe korrigiere setze ersetze entferne modifie modifiez mets mettez corrige corrigez"
    " crée créez supprime supprimez envoie envoyez déplace déplacez renomme renommez ajoute ajoutez ferme fermez"
    " ouvre ouvrez remplace remplacez veuillez cambia cambie arregla crea cree borra elimina envía envíe mueve mueva"
    " renombra agrega actualiza actualice cierra cierre abre añade escribe reemplaza modifica correggi invia sposta"
    " rinomina aggiungi aggiorna chiudi apri scrivi copia modifique altere corrija apague envie mova renomeie"
    " adicione atualize feche abra escreva wijzig maak verwijder stuur verplaats hernoem voeg sluit herstel werk"
    " schrijf"
)
# What may stand before the verb: "then please fix …", "Task: fix …", "we should fix …", "I want you to fix …".
LEADERS: Final = _words(
    " please kindly also only then now just first second third finally next additionally afterwards and but ok"
    " okay hi hello hey dear thanks"
    " again lastly furthermore plus bitte dann und aber puis ensuite et mais luego después y pero poi e ma depois mas dan en maar"
    " quickly carefully"
)
LABELS: Final = _words(
    "task tasks todo to-do goal goals objective job work action actions request aufgabe tâche tarea compito tarefa taak"
)
WISHES: Final = _phrases(
    "i want", "i need", "i would like", "i'd like", "i would love", "i'd love", "i want you to", "i need you to",
    "i would like you to", "i'd like you to", "we want you to", "we need you to", "we want", "we need", "we'd like you to",
    "let's", "let us", "you should", "we should", "you must", "we must", "you need to", "we need to", "you have to",
    "we have to", "you can", "you may", "your task is to", "your job is to", "the task is to", "the goal is to",
    "make sure", "make sure to", "make sure that", "be sure to", "feel free to", "it is time to", "it's time to",
    "we are going to", "we're going to", "i am asking you to", "i'm asking you to",
)  # fmt: skip
DONE: Final = _words(
    "fixed updated changed moved renamed deleted removed closed sent written committed added created merged staged"
)
# "In the file a.py, fix …": a place, which names something, and then the verb.
PLACES: Final = _words("in inside under within for from at on to into using with dans en dentro nel em auf im")

# A clause behind one of these says why, which or how, and asks for nothing: its negation and its conditions are its own.
SUBORDINATORS: Final = _words("so because since that which whose who where")
AVERTED: Final = _words("avoid prevent stop skip ignore exclude omit refuse reject")

# --- languages. A sentence none of whose words is here is not read, and gives nothing: a negation could stand in it unseen.
# Only words that tell a language apart: `to`, `a` or `do` are words of many.
READ: Final = IMPERATIVES | _words(
    # English: the words around what people ask for
    " test tests bug bugs issue issues line lines code function functions class error errors message meeting event calendar"
    " invoice payment account customer server database table tables row rows page pages report logs config configuration"
    " version path task tasks step steps note notes list todo readme changelog summary"
    " the this these those there their them they with from into onto about after before again all also and any are because"
    " both but by each every everything file files folder folders directory branch ticket tickets should would could which"
    " what when where please kindly our your you my we have has been make sure need needs want only new old same other first"
    " last next"
    # German, French, Spanish, Italian, Portuguese, Dutch
    " bitte der das und mit aus datei dateien ordner ändere schreibe schreib aktualisiere lösche verschiebe kopiere benenne"
    " schicke sende füge repariere behebe erstelle öffne schließe korrigiere setze ersetze entferne kannst könntest"
    " le les dans avec fichier fichiers dossier modifie modifiez mets mettez corrige corrigez crée créez supprime supprimez"
    " envoie envoyez déplace déplacez renomme renommez ajoute ajoutez ferme fermez ouvre ouvrez remplace veuillez peux-tu"
    " el los las archivo archivos carpeta por favor cambia cambie arregla crea cree borra elimina envía envíe mueve mueva"
    " renombra agrega actualiza actualice cierra cierre abre añade escribe reemplaza puedes podrías"
    " gli nel della file cartella modifica correggi elimina invia sposta rinomina aggiungi aggiorna chiudi apri scrivi copia"
    " arquivo ficheiro pasta modifique altere corrija apague envie mova renomeie adicione atualize feche abra escreva"
    " het bestand bestanden map wijzig maak verwijder stuur verplaats hernoem voeg sluit herstel werk schrijf kun"
)

# --- the shape of clauses.
COORDINATORS: Final = _words("and or then but plus & und oder dann et ou puis y e o luego poi dan ook ni")
BUT: Final = _words("but however yet though although aber sondern mais pero sino ma però mas porém maar")
FILLERS: Final = _words(
    "please also just then do does did you we i must should may can could would will to kindly absolutely definitely"
    " make sure be careful"
    " certainly so still even ever and but or is are bitte aber du sie por favor per favore alsjeblieft tu vous under by"
)
# A left side that begins with one of these asks for nothing by itself: "the file a.py, don't touch it".
NOMINAL: Final = _words(
    "the a an this that these those my our your his her its their all any every each both some for in on at with from regarding"
    " concerning about as of to by file files folder folders ticket tickets branch branches der die das den dem ein eine"
    " le la les un une des el los las una il lo gli i o os as het de een"
)
# "Look at a.py but don't change it": what is not to be done to `it` is not to be done to a.py.
ACTS: Final = _words(
    "touch change edit modify alter delete remove overwrite rewrite move rename open use send pay email mail contact"
    " write update merge"
    " close copy replace format reformat drop truncate execute run push publish post forward transfer"
)
PRONOUNS: Final = _words("it them this that these those either both her him him. anything")
THINGS: Final = _words("file files folder folders directory ticket tickets branch page document row record message mail")
# What stands behind one of these and a colon is text to be carried, not to be obeyed.
CONTENT: Final = _words(
    "message text body subject comment note reply title saying stating reading content description caption"
    " log output trace traceback stacktrace stack transcript excerpt snippet quote quoted email response feedback"
    " complaint pasted typed"
    " error warning"
)

ARTICLES: Final = _words("the a an this that my our your its new existing file folder directory dir branch path")
ABBREVIATIONS: Final = _words(
    "e.g i.e etc vs cf approx incl excl esp resp mr mrs ms dr prof st no nr nos fig sec ch vol pp ca bzw bspw usw"
    " inkl z.b d.h u.a p.ex ej"
    " p.ej sr sra ecc bijv m.b.t a.k.a aka eg ie"
)
