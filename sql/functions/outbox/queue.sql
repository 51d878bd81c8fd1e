-- Queues a message of any channel, in the caller's transaction.
SET LOCAL ROLE postern_owner;

-- Queues one message. What it says (code, link, text) is in p_payload, sealed by the caller for this realm and p_id
-- (MessagePayload.sealed); a notice, which holds no secret, has p_detail (JSON) in its place, and its text is made when
-- it is sent. Call it in the transaction that makes the code or link.
--   p_id         the message's id: Message-ID of a mail, id and jti of a call to a provider; the same on every retry.
--   p_channel    email, sms, voice, whatsapp or push. Whether the realm has a provider for it is asked of the
--                configuration (Realm.channels) before anything is counted, not here.
--   p_recipient  a mail address; an E.164 number; for push the handle of a device.
--   p_template   otp, magic-link, approval, or the name of a notice (queue_notice). It decides the envelope's kind.
--   p_purpose    sign-in, register, verify, identifier, possession, notice or approval. register, verify, identifier
--                and possession are for addresses that are not proven: they leave after all others and fill 4/5 of
--                the queue at most.
--   p_request    the handle (sign_in_request.id) that asked: gives client, App and locale, unless they are given, and
--                the page. What was queued for it before and has not left does not leave any more: people use the
--                newest.
--   p_expires_at when the message is useless, by the database clock; NULL: 24 hours. A code or link always
--                ends with the realm's lifetime of codes or links.
--   p_client, p_app  who asked: the client's key, the App's slug. The text names them.
--   p_locale     BCP 47 tag of the language; NULL: English.
--   p_region     the country of a number, unless p_request says it.
--   p_page_origin  of the page that asked, unless p_request says it.
-- A realm's queue is bounded (trigger message_admission): beyond it a message is dropped, audited, without an error.
-- A message to a phone takes its permits here (postern.take_message_permits); a notice may find others. False: it was
-- not queued. The caller shows nothing of that to who asked: it would tell which numbers are those of accounts.
CREATE OR REPLACE FUNCTION postern.queue_message(
    p_realm uuid, p_id uuid, p_channel text, p_recipient text, p_template text, p_purpose text, p_payload bytea,
    p_request bytea DEFAULT NULL, p_detail jsonb DEFAULT NULL, p_expires_at timestamptz DEFAULT NULL,
    p_client uuid DEFAULT NULL, p_app text DEFAULT NULL, p_locale text DEFAULT NULL, p_region text DEFAULT NULL,
    p_page_origin text DEFAULT NULL)
RETURNS boolean
LANGUAGE plpgsql
AS $$
DECLARE
    v_request record;
    v_reaches text := (postern.channel_of(p_channel)).reaches;
    v_permits text[];
    v_is_queued boolean;
BEGIN
    SELECT a.client, a.app, a.locale, a.region, a.device, a.page_origin, a.message INTO v_request
      FROM postern.sign_in_request AS a WHERE a.realm_id = p_realm AND a.id = p_request;
    IF v_reaches IS NULL THEN
        RAISE EXCEPTION 'there is no channel %', p_channel;
    ELSIF v_reaches = 'phone' THEN
        v_permits := postern.take_message_permits(
            p_realm, p_recipient, coalesce(p_region, v_request.region), coalesce(p_client, v_request.client),
            coalesce(p_app, v_request.app), p_purpose = 'notice', v_request.device IS NOT NULL);
        IF v_permits IS NULL
           AND (p_purpose <> 'notice' OR NOT postern.take_notice_permits(p_realm, p_recipient)) THEN
            RETURN false;
        END IF;
    END IF;
    INSERT INTO postern.message_outbox (realm_id, id, channel, recipient, template, purpose, payload, detail,
                                        expires_at,
                                     client, app, locale, page_host, permits)
    VALUES (p_realm, p_id, p_channel, p_recipient, p_template, p_purpose, p_payload, p_detail,
            coalesce(p_expires_at, now() + interval '24 hours'), coalesce(p_client, v_request.client),
            coalesce(p_app, v_request.app), coalesce(p_locale, v_request.locale),
            postern.origin_host(coalesce(v_request.page_origin, p_page_origin)), v_permits);
    -- The queue was not full.
    v_is_queued := FOUND;
    IF v_is_queued AND p_request IS NOT NULL THEN
        PERFORM postern.supersede_message(p_realm, v_request.message);
        UPDATE postern.sign_in_request AS a SET message = p_id WHERE a.realm_id = p_realm AND a.id = p_request;
    ELSIF NOT v_is_queued AND v_permits <> '{}' THEN
        PERFORM postern.return_message_permits(p_realm, p_recipient, v_permits);
    END IF;
    RETURN v_is_queued;
END
$$;
COMMENT ON FUNCTION postern.queue_message IS
    'Queues a message of any channel, sealed or a notice; false when it is not sent';
GRANT EXECUTE ON FUNCTION postern.queue_message TO postern_app;

RESET ROLE;
