-- Of a small session, all kinds of events in it: what sqlite3's iterdump gave of the store that commit 1351b17 wrote.
PRAGMA application_id = 1919181665;
PRAGMA user_version = 3;
BEGIN TRANSACTION;
CREATE TABLE blobs (name TEXT PRIMARY KEY, text TEXT NOT NULL);
INSERT INTO "blobs" VALUES('a3d7f7e36bf432d5e3902ab5da1ac4a5-3a3','line 1 of the file, which is there to be read
line 2 of the file, which is there to be read
line 3 of the file, which is there to be read
line 4 of the file, which is there to be read
line 5 of the file, which is there to be read
line 6 of the file, which is there to be read
line 7 of the file, which is there to be read
line 8 of the file, which is there to be read
line 9 of the file, which is there to be read
line 10 of the file, which is there to be read
line 11 of the file, which is there to be read
line 12 of the file, which is there to be read
line 13 of the file, which is there to be read
line 14 of the file, which is there to be read
line 15 of the file, which is there to be read
line 16 of the file, which is there to be read
line 17 of the file, which is there to be read
line 18 of the file, which is there to be read
line 19 of the file, which is there to be read
line 20 of the file, which is there to be read
');
INSERT INTO "blobs" VALUES('2b51ed3173ebf4645ce22eb3bcfb4fcc-42','[UNCHANGED be13.2: f lines 5-20, above in "cat f"; repeat to see]
');
INSERT INTO "blobs" VALUES('9bdf9cb90a2436cb423424863992bf78-1b','new text
new text
new text
');
INSERT INTO "blobs" VALUES('8305f35fe6c4e28c56855f077d27f341-5d','made it
[LEFT_OUT be13.5: output lines 2-21, above in "cat f" as lines 1-20; it ran, exit 0]
');
INSERT INTO "blobs" VALUES('99aa06d3014798d86001c324468d497f-0','');
INSERT INTO "blobs" VALUES('0d11f96e846c60c3a2e5b59f72671cb3-8','1:é [..]');
INSERT INTO "blobs" VALUES('6a1c17ecd7dedb443df514135ff7c0dd-38f','row 1 of the file, which is there to be read
row 2 of the file, which is there to be read
row 3 of the file, which is there to be read
row 4 of the file, which is there to be read
row 5 of the file, which is there to be read
row 6 of the file, which is there to be read
row 7 of the file, which is there to be read
row 8 of the file, which is there to be read
row 9 of the file, which is there to be read
row 10 of the file, which is there to be read
row 11 of the file, which is there to be read
row 12 of the file, which is there to be read
row 13 of the file, which is there to be read
row 14 of the file, which is there to be read
row 15 of the file, which is there to be read
row 16 of the file, which is there to be read
row 17 of the file, which is there to be read
row 18 of the file, which is there to be read
row 19 of the file, which is there to be read
row 20 of the file, which is there to be read
');
INSERT INTO "blobs" VALUES('d3420fd9eedd14a80f280210bdc26c1d-38f','col 1 of the file, which is there to be read
col 2 of the file, which is there to be read
col 3 of the file, which is there to be read
col 4 of the file, which is there to be read
col 5 of the file, which is there to be read
col 6 of the file, which is there to be read
col 7 of the file, which is there to be read
col 8 of the file, which is there to be read
col 9 of the file, which is there to be read
col 10 of the file, which is there to be read
col 11 of the file, which is there to be read
col 12 of the file, which is there to be read
col 13 of the file, which is there to be read
col 14 of the file, which is there to be read
col 15 of the file, which is there to be read
col 16 of the file, which is there to be read
col 17 of the file, which is there to be read
col 18 of the file, which is there to be read
col 19 of the file, which is there to be read
col 20 of the file, which is there to be read
');
CREATE TABLE contexts (
        session TEXT NOT NULL, agent TEXT NOT NULL, events INTEGER NOT NULL, at REAL NOT NULL,
        newest_call TEXT, floor INTEGER NOT NULL DEFAULT 0, PRIMARY KEY (session, agent)) WITHOUT ROWID;
INSERT INTO "contexts" VALUES('s','child',3,1.79580260602219533927e+09,'d1',0);
INSERT INTO "contexts" VALUES('s','main',13,2000.0,'c7',0);
CREATE TABLE events (
        seq INTEGER PRIMARY KEY AUTOINCREMENT, session TEXT NOT NULL, agent TEXT NOT NULL, at REAL NOT NULL,
        kind TEXT NOT NULL, call_id TEXT NOT NULL, body TEXT NOT NULL, blob TEXT REFERENCES blobs (name));
INSERT INTO "events" VALUES(1,'s','main',1.79580260598482179638e+09,'delivered','c1','{"call_id":"c1","label":"cat f","pieces":[{"keys":["/w/f"],"at":0,"count":20,"first":1,"eof":true}],"when":{"call":1,"tokens":233,"started":0},"account":{"request":"b1d70a95929c8d55758c75ec93422011","outcome":"full","reason":"not_seen","output_chars":931,"tokens_saved":0,"host":"python","tool":"bash"}}','a3d7f7e36bf432d5e3902ab5da1ac4a5-3a3');
INSERT INTO "events" VALUES(2,'s','main',1.7958026059916980267e+09,'delivered','c2','{"call_id":"c2","label":"sed -n ''5,20p'' f","pointers":[{"line":0,"path":"/w/f","start":5,"end":20,"sources":["c1"],"marker":"[UNCHANGED be13.2: f lines 5-20, above in \"cat f\"; repeat to see]","stands":[{"call_id":"c1","origin":"result","at":4,"count":16,"digest":"89cf143d159dc67c03ef2c6f26e6a168"}]}],"when":{"call":2,"tokens":250,"batch":"b","started":1},"account":{"request":"0fa6cb3ff22f895def7efbc00a74b8f8","outcome":"unchanged","reason":"covered","output_chars":747,"tokens_saved":170,"host":"python","tool":"bash"}}','2b51ed3173ebf4645ce22eb3bcfb4fcc-42');
INSERT INTO "events" VALUES(3,'s','main',1.79580260599273610114e+09,'delivered','c3','{"call_id":"c3","label":"grep -n é g","when":{"call":3,"tokens":254,"started":2},"account":{"request":"115701279e613e70c8aaa60937b0906f","outcome":"full","reason":"too_short","output_chars":13,"tokens_saved":0,"asked":["/w/g"],"shown_chars":13,"host":"python","tool":"bash"}}','99aa06d3014798d86001c324468d497f-0');
INSERT INTO "events" VALUES(4,'s','main',1.79580260599310040478e+09,'wrote','c4','{"call_id":"c4","keys":["/w/h"],"label":"write /w/h","call":4}',NULL);
INSERT INTO "events" VALUES(5,'s','main',1.79580260599310040478e+09,'delivered','c4','{"call_id":"c4","label":"write /w/h","origin":"command","pieces":[{"keys":["/w/h"],"at":0,"count":3,"first":1,"eof":true}],"when":{"call":4,"tokens":261}}','9bdf9cb90a2436cb423424863992bf78-1b');
INSERT INTO "events" VALUES(6,'s','main',1.79580260599808454518e+09,'delivered','c5','{"call_id":"c5","label":"make","pointers":[{"line":1,"path":null,"start":2,"end":21,"sources":["c1"],"marker":"[LEFT_OUT be13.5: output lines 2-21, above in \"cat f\" as lines 1-20; it ran, exit 0]","stands":[{"call_id":"c1","origin":"result","at":0,"count":20,"digest":"a3d7f7e36bf432d5e3902ab5da1ac4a5"}]}],"when":{"call":5,"tokens":285,"started":4},"account":{"request":"c6a79165d50998f69c008095deb1f78d","outcome":"partial","reason":"repeated_lines","output_chars":939,"tokens_saved":211,"host":"python","tool":"bash"}}','8305f35fe6c4e28c56855f077d27f341-5d');
INSERT INTO "events" VALUES(7,'s','main',1.79580260599933600428e+09,'settled','c3','{"call_id":"c3","erases":true}','0d11f96e846c60c3a2e5b59f72671cb3-8');
INSERT INTO "events" VALUES(8,'s','main',1.79580260601144218448e+09,'delivered','c6','{"call_id":"c6","label":"cat k","pieces":[{"keys":["/w/k"],"at":0,"count":20,"first":1,"eof":true}],"when":{"call":6,"tokens":513,"started":5},"account":{"request":"7c1e9ff9025d9122c652dc14aa790c61","outcome":"full","reason":"not_seen","output_chars":911,"tokens_saved":0,"host":"python","tool":"bash"}}','6a1c17ecd7dedb443df514135ff7c0dd-38f');
INSERT INTO "events" VALUES(9,'s','main',1.79580260601265621184e+09,'delivered','c7','{"call_id":"c7","label":"cat l","pieces":[{"keys":["/w/l"],"at":0,"count":20,"first":1,"eof":true}],"when":{"call":7,"tokens":741,"started":6},"account":{"request":"df34c48ba0f49fe5238d74442ae1763c","outcome":"full","reason":"not_seen","output_chars":911,"tokens_saved":0,"host":"python","tool":"bash"}}','d3420fd9eedd14a80f280210bdc26c1d-38f');
INSERT INTO "events" VALUES(10,'s','main',1.7958026060130460262e+09,'rewound','c6','{"call_id":"c6"}',NULL);
INSERT INTO "events" VALUES(11,'s','child',1.79580260601440858843e+09,'delivered','d1','{"call_id":"d1","label":"cat f","pieces":[{"keys":["/w/f"],"at":0,"count":20,"first":1,"eof":true}],"when":{"call":1,"tokens":233,"started":0},"account":{"request":"b1d70a95929c8d55758c75ec93422011","outcome":"full","reason":"not_seen","output_chars":931,"tokens_saved":0,"host":"python","tool":"bash"}}','a3d7f7e36bf432d5e3902ab5da1ac4a5-3a3');
INSERT INTO "events" VALUES(12,'s','child',1.79580260602186655991e+09,'compacted','','{"kept":["d1"]}',NULL);
INSERT INTO "events" VALUES(13,'s','child',1.79580260602219533927e+09,'closed','','{}',NULL);
INSERT INTO "events" VALUES(14,'s','main',1.79580260602237868306e+09,'closed','','{}',NULL);
INSERT INTO "events" VALUES(15,'s','main',2000.0,'forgot','','{"call_ids":["c3"]}',NULL);
INSERT INTO "events" VALUES(16,'s','main',2000.0,'failed','c8','{"call_id":"c8","cause":"store_failed","detail":"the disk was full"}',NULL);
CREATE TABLE found_by (
        session TEXT NOT NULL, agent TEXT NOT NULL, what TEXT NOT NULL, name TEXT NOT NULL, seq INTEGER NOT NULL,
        call_id TEXT NOT NULL, PRIMARY KEY (session, agent, what, name, seq)) WITHOUT ROWID;
INSERT INTO "found_by" VALUES('s','child','path','/w/f',11,'d1');
INSERT INTO "found_by" VALUES('s','child','text','a3d7f7e36bf432d5e3902ab5da1ac4a5',11,'d1');
INSERT INTO "found_by" VALUES('s','main','path','/w/f',1,'c1');
INSERT INTO "found_by" VALUES('s','main','path','/w/f',2,'c2');
INSERT INTO "found_by" VALUES('s','main','path','/w/h',5,'c4');
INSERT INTO "found_by" VALUES('s','main','path','/w/k',8,'c6');
INSERT INTO "found_by" VALUES('s','main','rewound','',10,'c6');
INSERT INTO "found_by" VALUES('s','main','source','c1',6,'c5');
INSERT INTO "found_by" VALUES('s','main','text','2b51ed3173ebf4645ce22eb3bcfb4fcc',2,'c2');
INSERT INTO "found_by" VALUES('s','main','text','6a1c17ecd7dedb443df514135ff7c0dd',8,'c6');
INSERT INTO "found_by" VALUES('s','main','text','8305f35fe6c4e28c56855f077d27f341',6,'c5');
INSERT INTO "found_by" VALUES('s','main','text','9bdf9cb90a2436cb423424863992bf78',5,'c4');
INSERT INTO "found_by" VALUES('s','main','text','a3d7f7e36bf432d5e3902ab5da1ac4a5',1,'c1');
CREATE INDEX events_of_session ON events (session);
CREATE INDEX events_of_context ON events (session, agent);
CREATE INDEX events_of_call ON events (session, call_id);
CREATE INDEX events_not_shown ON events (session, agent) WHERE kind NOT IN ('delivered', 'settled');
CREATE INDEX events_of_writes ON events (session) WHERE kind = 'wrote';
CREATE INDEX events_of_blob ON events (blob) WHERE blob IS NOT NULL;
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('events',16);
COMMIT;
