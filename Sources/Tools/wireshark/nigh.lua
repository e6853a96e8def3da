-- A Wireshark dissector for the Nigh protocol, version 1, as described in docs/reference/PROTOCOL.md.
--
-- It takes two kinds of packets: those of `nigh trace FILE --pcapng OUT` (link type USER0, each with one frame, or with
-- one packet of a datagram path, already decrypted), and plain TCP connections that begin with Nigh's preface. On such a
-- connection it reads the frames if both sides have encryption switched off; otherwise it passes the rest to the TLS
-- dissector.
--
-- It changes nothing, and keeps of a link only what later frames need: whether there was a hello, when pings were sent,
-- and how messages are numbered. docs/reference/nigh/trace.md says how to install it.

local nigh = Proto("nigh", "Nigh Session Protocol")

local frame_names = {
    [0x01] = "hello", [0x02] = "close", [0x03] = "ping", [0x04] = "pong", [0x05] = "acknowledge",
    [0x06] = "invite", [0x07] = "accept", [0x08] = "decline", [0x09] = "resume", [0x0A] = "pair",
    [0x10] = "message on main", [0x11] = "message on bulk", [0x12] = "begin on main", [0x13] = "begin on bulk",
    [0x14] = "piece on main", [0x15] = "piece on bulk",
    [0x16] = "kind-message on main", [0x17] = "kind-message on bulk", [0x18] = "stream-data", [0x19] = "stream-control",
    [0x1A] = "datagrams",
    [0x20] = "unreliable",
    [0x80] = "crossed", [0x81] = "introduction",
}
local close_codes = {
    [0] = "left", [1] = "protocolViolation", [2] = "superseded", [3] = "selfDial", [4] = "sameIdentity",
    [5] = "cancelled", [6] = "silent", [7] = "noCommonVersion", [8] = "noCommonSecurity", [9] = "wrongService",
    [10] = "wrongPeer", [11] = "restarted", [12] = "tooManyLinks", [13] = "tooSlow", [14] = "sessionClosed",
    [15] = "other", [16] = "notPaired", [17] = "claimsAnotherPeer", [18] = "prefaceChanged",
}
local refusal_codes = {
    [0] = "declined", [1] = "full", [2] = "busy", [3] = "unknownConversation", [4] = "outOfDate",
}
local pairing_kinds = {
    [1] = "commitment", [2] = "nonce", [3] = "reveal", [4] = "confirmed", [5] = "refused",
}
local pairing_refusals = {
    [0] = "declined", [1] = "the digits differ", [2] = "busy", [3] = "not now", [4] = "timed out",
}
local stream_kinds = {
    [0] = "open", [1] = "credit", [2] = "finish", [3] = "cancel", [4] = "stop", [5] = "release",
    [6] = "open-for",
}
local stream_purposes = {
    [1] = "files", [2] = "relay", [3] = "channel", [4] = "calls", [5] = "channelStream", [6] = "actors",
    [7] = "forward", [8] = "comparedFiles",
}
local kinds = { [1] = "groups", [2] = "introductions" }
local introduction_kinds = {
    [1] = "here", [2] = "member", [3] = "gone", [4] = "ask", [5] = "introduction", [6] = "path",
}
local lanes = { [0] = "main", [1] = "bulk" }
local packet_kinds = { [1] = "probe", [2] = "answer", [3] = "message", [4] = "fragment", [5] = "report" }
local orders = { [0] = "unordered", [1] = "in order" }
local capture_kinds = { [0] = "preface", [1] = "frame", [2] = "packet beside the link" }
local directions = { [0] = "came in", [1] = "went out" }

local f = {
    -- The header that nigh trace puts before each packet.
    capture_version = ProtoField.uint8("nigh.capture.version", "Version of this header"),
    direction = ProtoField.uint8("nigh.capture.direction", "Direction", base.DEC, directions),
    capture_kind = ProtoField.uint8("nigh.capture.kind", "Kind", base.DEC, capture_kinds),
    dialled = ProtoField.bool("nigh.capture.dialled", "Dialled by the capturing side", 8, nil, 0x01),
    proven = ProtoField.bool("nigh.capture.proven", "The peer has proven its key", 8, nil, 0x02),
    capture_length = ProtoField.uint32("nigh.capture.length", "Length of this header"),
    link = ProtoField.uint64("nigh.capture.link", "Link"),
    -- The preface.
    magic = ProtoField.string("nigh.preface.magic", "Magic"),
    layout = ProtoField.uint8("nigh.preface.layout", "Layout"),
    security = ProtoField.uint8("nigh.preface.security", "Kinds of security accepted", base.HEX),
    plaintext = ProtoField.bool("nigh.preface.plaintext", "Plaintext", 8, nil, 0x01),
    tls13 = ProtoField.bool("nigh.preface.tls13", "TLS 1.3", 8, nil, 0x02),
    -- Any frame.
    length = ProtoField.uint24("nigh.length", "Length of the payload"),
    type = ProtoField.uint8("nigh.type", "Type", base.HEX, frame_names),
    payload = ProtoField.bytes("nigh.payload", "Payload"),
    lane = ProtoField.uint8("nigh.lane", "Lane", base.DEC, lanes),
    number = ProtoField.uint64("nigh.message.number", "Number of the message"),
    message_kind = ProtoField.uint8("nigh.message.kind", "Kind of the message"),
    message_size = ProtoField.uint32("nigh.message.size", "Size of the message that follows in pieces"),
    -- Hello.
    lowest = ProtoField.uint8("nigh.hello.lowest_version", "Lowest version"),
    highest = ProtoField.uint8("nigh.hello.highest_version", "Highest version"),
    abilities = ProtoField.uint32("nigh.hello.abilities", "Optional abilities", base.HEX),
    has_streams = ProtoField.bool("nigh.hello.has_streams", "Streams", 32, nil, 0x01),
    accepts_files = ProtoField.bool("nigh.hello.accepts_files", "Accepts streams for files", 32, nil, 0x02),
    accepts_kinds = ProtoField.bool("nigh.hello.accepts_kinds", "Takes messages of kinds", 32, nil, 0x04),
    peer = ProtoField.string("nigh.hello.peer", "PeerID"),
    peer_bytes = ProtoField.bytes("nigh.hello.peer_bytes", "PeerID as bytes"),
    incarnation = ProtoField.uint64("nigh.hello.incarnation", "Incarnation", base.HEX),
    maximum_frame = ProtoField.uint32("nigh.hello.maximum_frame", "Longest frame payload taken"),
    maximum_message = ProtoField.uint32("nigh.hello.maximum_message", "Longest message taken"),
    service = ProtoField.string("nigh.hello.service", "Service"),
    name = ProtoField.string("nigh.hello.name", "Display name"),
    field_tag = ProtoField.uint8("nigh.hello.field.tag", "Tag of a field", base.HEX),
    field_length = ProtoField.uint16("nigh.hello.field.length", "Length of a field"),
    field_bytes = ProtoField.bytes("nigh.hello.field.bytes", "Content of a field"),
    -- Close, decline.
    close_code = ProtoField.uint16("nigh.close.code", "Code", base.DEC, close_codes),
    words = ProtoField.string("nigh.words", "Words"),
    refusal_code = ProtoField.uint8("nigh.decline.code", "Code", base.DEC, refusal_codes),
    retry_after = ProtoField.uint32("nigh.decline.retry_after", "Retry after (seconds)"),
    -- Ping, pong.
    token = ProtoField.uint64("nigh.ping.token", "Token", base.HEX),
    extra = ProtoField.bytes("nigh.ping.extra", "Further bytes"),
    ping_in = ProtoField.framenum("nigh.pong.ping_in", "Answers the ping in"),
    round_trip = ProtoField.double("nigh.pong.round_trip", "Since that ping (seconds)"),
    -- Requests, acceptances, standings.
    conversation = ProtoField.uint64("nigh.conversation", "Conversation", base.HEX),
    attempt = ProtoField.uint64("nigh.attempt", "Attempt"),
    received_main = ProtoField.uint64("nigh.standing.received_main", "Messages received on main"),
    received_bulk = ProtoField.uint64("nigh.standing.received_bulk", "Messages received on bulk"),
    granted_main = ProtoField.uint64("nigh.standing.granted_main", "Bytes granted on main"),
    granted_bulk = ProtoField.uint64("nigh.standing.granted_bulk", "Bytes granted on bulk"),
    timeout = ProtoField.uint32("nigh.request.timeout", "Waits for an answer (milliseconds)"),
    context_length = ProtoField.uint16("nigh.request.context_length", "Length of the context"),
    context = ProtoField.bytes("nigh.request.context", "Context"),
    stream_frames = ProtoField.uint64("nigh.standing.stream_frames", "Frames of streams received"),
    -- Streams.
    stream = ProtoField.uint32("nigh.stream", "Stream"),
    stream_kind = ProtoField.uint8("nigh.stream.kind", "Kind", base.DEC, stream_kinds),
    stream_purpose = ProtoField.uint8("nigh.stream.purpose", "Purpose", base.DEC, stream_purposes),
    stream_name = ProtoField.string("nigh.stream.name", "Name"),
    stream_credit = ProtoField.uint64("nigh.stream.credit", "Bytes that may be sent in all"),
    relay_peer = ProtoField.string("nigh.stream.relay_peer", "The other end of the pipe"),
    -- Introductions.
    accepts_relays = ProtoField.bool("nigh.hello.accepts_relays", "Accepts streams for relays", 32, nil, 0x10),
    accepts_channels = ProtoField.bool("nigh.hello.accepts_channels", "Accepts streams for channels", 32, nil, 0x40),
    accepts_calls = ProtoField.bool("nigh.hello.accepts_calls", "Accepts streams for calls", 32, nil, 0x80),
    accepts_channel_streams = ProtoField.bool("nigh.hello.accepts_channel_streams", "Accepts streams of channels", 32, nil, 0x100),
    accepts_actors = ProtoField.bool("nigh.hello.accepts_actors", "Accepts streams for actors", 32, nil, 0x200),
    accepts_forwarding = ProtoField.bool(
        "nigh.hello.accepts_forwarding", "Accepts forwarded connections", 32, nil, 0x400),
    record_kind = ProtoField.uint8("nigh.introduction.kind", "Record", base.DEC, introduction_kinds),
    record_length = ProtoField.uint16("nigh.introduction.length", "Length of the record"),
    record_bytes = ProtoField.bytes("nigh.introduction.bytes", "Content of the record"),
    in_mesh = ProtoField.bool("nigh.introduction.mesh", "In the mesh", 8, nil, 0x01),
    relayed = ProtoField.bool("nigh.introduction.relay", "Relayed", 8, nil, 0x02),
    asks_for_paths = ProtoField.bool("nigh.introduction.asks_for_paths", "Asks for paths", 8, nil, 0x04),
    path_scheme = ProtoField.string("nigh.introduction.path", "Transport of the path"),
    path_has_carrier = ProtoField.uint8("nigh.introduction.path_has_carrier", "Carriers of the path"),
    nonce = ProtoField.uint64("nigh.introduction.nonce", "Nonce", base.HEX),
    advertisement_length = ProtoField.uint16("nigh.introduction.advertisement_length", "Length of the advertisement"),
    spoken_service = ProtoField.string("nigh.introduction.service", "Service"),
    spoken_name = ProtoField.string("nigh.introduction.name", "Display name"),
    spoken_pair = ProtoField.string("nigh.introduction.pair", "Pair"),
    spoken_peer = ProtoField.string("nigh.introduction.peer", "PeerID"),
    address_count = ProtoField.uint8("nigh.introduction.addresses", "Addresses"),
    address = ProtoField.string("nigh.introduction.address", "Address"),
    token_length = ProtoField.uint16("nigh.introduction.token_length", "Length of the token"),
    other_token = ProtoField.bytes("nigh.introduction.token", "Token of another form"),
    token_key = ProtoField.bytes("nigh.introduction.key", "Introducer's public key"),
    token_number = ProtoField.uint64("nigh.introduction.number", "Number"),
    token_signature = ProtoField.bytes("nigh.introduction.signature", "Signature"),
    -- Datagrams.
    takes_packets = ProtoField.bool("nigh.hello.takes_packets", "May take packets beside the link", 32, nil, 0x08),
    connection = ProtoField.uint64("nigh.packet.connection", "Connection of the receiver", base.HEX),
    longest_packet = ProtoField.uint16("nigh.datagrams.longest_packet", "Longest packet taken"),
    place_length = ProtoField.uint8("nigh.datagrams.place_length", "Length of the place"),
    place = ProtoField.bytes("nigh.datagrams.place", "Place"),
    packet_number = ProtoField.uint64("nigh.packet.number", "Number of the packet"),
    packet_kind = ProtoField.uint8("nigh.packet.kind", "Kind", base.DEC, packet_kinds),
    packet_token = ProtoField.uint64("nigh.packet.token", "Token", base.HEX),
    probe_in = ProtoField.framenum("nigh.packet.probe_in", "Answers the probe in"),
    order = ProtoField.uint8("nigh.packet.order", "Order"),
    key = ProtoField.uint8("nigh.packet.key", "Key"),
    part_of = ProtoField.uint32("nigh.packet.fragment.message", "Number among the messages in parts"),
    part_index = ProtoField.uint8("nigh.packet.fragment.index", "Index of the part"),
    part_count = ProtoField.uint8("nigh.packet.fragment.count", "Parts of the message"),
    report_highest = ProtoField.uint64("nigh.packet.report.highest", "Highest number that has come"),
    report_delay = ProtoField.uint32("nigh.packet.report.delay", "Not reported for (microseconds)"),
    report_received = ProtoField.uint64("nigh.packet.report.received", "Packets that have come"),
    -- Pair.
    pair_kind = ProtoField.uint8("nigh.pair.kind", "Kind", base.DEC, pairing_kinds),
    pair_value = ProtoField.bytes("nigh.pair.value", "Value"),
    pair_refusal = ProtoField.uint8("nigh.pair.refusal", "Reason", base.DEC, pairing_refusals),
}
nigh.fields = f

local violation = ProtoExpert.new(
    "nigh.violation", "This breaks the protocol", expert.group.PROTOCOL, expert.severity.ERROR)
local shortened = ProtoExpert.new(
    "nigh.shortened", "Only the beginning of this was captured", expert.group.COMMENTS_GROUP, expert.severity.NOTE)
local skipped = ProtoExpert.new(
    "nigh.unknown_optional", "A frame of a later version, to be skipped", expert.group.UNDECODED, expert.severity.NOTE)
local ignored = ProtoExpert.new(
    "nigh.unknown_packet", "A packet of a later version, to be ignored", expert.group.UNDECODED, expert.severity.NOTE)
nigh.experts = { violation, shortened, skipped, ignored }

local hello_limit = 4096
local ping_limit = 1024
local context_limit = 4096
local least_maximum_frame = 8192
local letters = "abcdefghijklmnopqrstuvwxyz234567"

-- The state of each link, by its name. It is filled in on the first pass over the capture, in order.
local links = {}

local function state_of(key)
    local state = links[key]
    if state == nil then
        -- By side: the security bits of its preface, the packet with its hello, its frame limit. By packet and place:
        -- the number of a message.
        state = { preface = {}, hello = {}, limit = {}, pings = {}, probes = {}, answers = {}, next = {}, numbers = {} }
        links[key] = state
    end
    return state
end

function nigh.init() links = {} end

-- Returns the bytes as 52 letters of base 32, without padding.
local function base32(bytes)
    local bits, count, text = 0, 0, {}
    for index = 0, bytes:len() - 1 do
        bits = bits * 256 + bytes:get_index(index)
        count = count + 8
        while count >= 5 do
            local shift = 2 ^ (count - 5)
            local digit = math.floor(bits / shift)
            text[#text + 1] = letters:sub(digit + 1, digit + 1)
            bits = bits - digit * shift
            count = count - 5
        end
    end
    if count > 0 then
        local digit = math.floor(bits * 2 ^ (5 - count))
        text[#text + 1] = letters:sub(digit + 1, digit + 1)
    end
    return table.concat(text)
end

-- A position in a payload (nil for an empty one) from which fields are read one after another. Once something is
-- missing, nothing more is read.
local Reader = {}
Reader.__index = Reader

local function reader(tvb, tree)
    return setmetatable(
        { tvb = tvb, length = tvb and tvb:len() or 0, tree = tree, position = 0, broken = false }, Reader)
end

function Reader:left() return self.length - self.position end

function Reader:fail(what)
    if not self.broken then self.tree:add_proto_expert_info(violation, what) end
    self.broken = true
end

function Reader:take(count, what)
    if self.broken then return nil end
    if self:left() < count then
        self:fail(what .. " is cut short")
        return nil
    end
    local range = count > 0 and self.tvb:range(self.position, count) or nil
    self.position = self.position + count
    return range
end

function Reader:number(field, count, what)
    local range = self:take(count, what)
    if range == nil then return nil end
    self.tree:add(field, range)
    if count == 8 then return range:uint64() end
    return range:uint()
end

-- Reads text that follows its length, which is one byte.
function Reader:text(field, what)
    local range = self:take(1, what)
    if range == nil then return nil end
    local count = range:uint()
    if count == 0 then
        self.tree:add(field, range, ""):set_text("")
        return ""
    end
    local text = self:take(count, what)
    if text == nil then return nil end
    local words = text:string(ENC_UTF_8)
    self.tree:add(field, text, words)
    return words
end

function Reader:finish(what)
    if not self.broken and self:left() > 0 then self:fail(what .. " has " .. self:left() .. " bytes too many") end
end

local function standing(r)
    local main = r:number(f.received_main, 8, "a count of messages")
    local bulk = r:number(f.received_bulk, 8, "a count of messages")
    local granted_main = r:number(f.granted_main, 8, "a grant of bytes")
    local granted_bulk = r:number(f.granted_bulk, 8, "a grant of bytes")
    if granted_bulk == nil then return nil end
    return { [0] = main, [1] = bulk, words = "has " .. tostring(main) .. " and " .. tostring(bulk) }
end

local dissect = {}

dissect[0x01] = function(r, context)
    if context.state.hello[context.side] ~= context.number then r:fail("a second hello") end
    local lowest = r:number(f.lowest, 1, "the hello's lowest version")
    local highest = r:number(f.highest, 1, "the hello's highest version")
    if highest ~= nil and (lowest < 1 or lowest > highest) then r:fail("the hello's version range is empty") end
    if r:number(f.abilities, 4, "the hello's abilities") ~= nil then
        local abilities = r.tvb:range(r.position - 4, 4)
        r.tree:add(f.has_streams, abilities)
        r.tree:add(f.accepts_files, abilities)
        r.tree:add(f.accepts_kinds, abilities)
        r.tree:add(f.takes_packets, abilities)
        r.tree:add(f.accepts_relays, abilities)
        r.tree:add(f.accepts_channels, abilities)
        r.tree:add(f.accepts_calls, abilities)
        r.tree:add(f.accepts_channel_streams, abilities)
        r.tree:add(f.accepts_actors, abilities)
        r.tree:add(f.accepts_forwarding, abilities)
    end
    local peer = r:take(32, "the hello's PeerID")
    local id = ""
    if peer ~= nil then
        id = base32(peer:bytes())
        r.tree:add(f.peer, peer, id)
        r.tree:add(f.peer_bytes, peer)
    end
    r:number(f.incarnation, 8, "the hello's incarnation")
    local limit = r:number(f.maximum_frame, 4, "the hello's frame limit")
    if limit ~= nil and limit < least_maximum_frame then r:fail("the hello's frame limit is too small") end
    context.state.limit[context.side] = limit
    r:number(f.maximum_message, 4, "the hello's message limit")
    local service = r:text(f.service, "the hello's service")
    local name = r:text(f.name, "the hello's name")
    if service ~= nil and (#service < 1 or #service > 15) then r:fail("the hello's service name is invalid") end
    if name ~= nil and (#name < 1 or #name > 63) then r:fail("the hello's display name is invalid") end
    while not r.broken and r:left() > 0 do
        local tag = r:number(f.field_tag, 1, "a hello field's tag")
        local count = r:number(f.field_length, 2, "a hello field's length")
        local content = count ~= nil and r:take(count, "a hello field")
        if content then r.tree:add(f.field_bytes, content) end
        if tag ~= nil and tag >= 0x80 then r:fail("the hello has an unknown critical field " .. tag) end
    end
    return (name or "?") .. " (" .. id:sub(1, 8) .. "), " .. (service or "?")
end

dissect[0x02] = function(r)
    local code = r:number(f.close_code, 2, "a close code")
    local words = r:text(f.words, "a close's words")
    r:finish("a close")
    if code == nil then return "" end
    return (close_codes[code] or ("code " .. code)) .. ((words or "") ~= "" and ": " .. words or "")
end

local function token(r, what)
    local number = r:number(f.token, 8, what .. "'s token")
    if number == nil then return nil end
    if r:left() > ping_limit then r:fail(what .. " of " .. r.length .. " bytes") end
    if not r.broken and r:left() > 0 then r.tree:add(f.extra, r:take(r:left(), what)) end
    return number:tohex()
end

dissect[0x03] = function(r, context)
    local number = token(r, "a ping")
    if number == nil then return "" end
    if context.first_pass then
        context.state.pings[context.side .. number] = { packet = context.number, time = context.time }
    end
    return "token " .. number
end

dissect[0x04] = function(r, context)
    local number = token(r, "a pong")
    if number == nil then return "" end
    local place = context.number .. "/" .. context.offset
    if context.first_pass then
        local key = (1 - context.side) .. number
        context.state.answers[place] = context.state.pings[key]
        context.state.pings[key] = nil
    end
    local ping = context.state.answers[place]
    if ping == nil then return "token " .. number end
    r.tree:add(f.ping_in, ping.packet):set_generated()
    r.tree:add(f.round_trip, context.time - ping.time):set_generated()
    return string.format("token %s, %.3f ms after its ping", number, (context.time - ping.time) * 1000)
end

-- When one side says what it has received, the other continues to count from there.
local function begin_counting(context, counts)
    if counts == nil or not context.first_pass then return end
    for lane = 0, 1 do context.state.next[(1 - context.side) .. "/" .. lane] = counts[lane] + 1 end
end

-- The count of the frames of streams, at the end of a frame with a standing.
local function stream_count(r)
    if r.broken or r:left() == 0 then return "" end
    local count = r:number(f.stream_frames, 8, "a count of stream frames")
    if count == nil then return "" end
    if count == UInt64(0) then r:fail("a count of no stream frames") end
    return ", and " .. tostring(count) .. " frames of streams"
end

dissect[0x05] = function(r)
    local counts = standing(r)
    local more = stream_count(r)
    r:finish("an acknowledgement")
    return counts and counts.words .. more or ""
end

local function request(r, context)
    local conversation = r:number(f.conversation, 8, "a request's conversation")
    local attempt = r:number(f.attempt, 8, "a request's attempt")
    local counts = standing(r)
    begin_counting(context, counts)
    r:number(f.timeout, 4, "a request's timeout")
    local count = r:number(f.context_length, 2, "an invitation's context")
    if count ~= nil and count > context_limit then
        r:fail("an invitation's context has " .. count .. " bytes, the limit is " .. context_limit)
    end
    local words = count ~= nil and count > 0 and r:take(count, "an invitation's context")
    if words then r.tree:add(f.context, words) end
    local more = stream_count(r)
    r:finish("a request")
    if counts == nil then return "" end
    return "conversation " .. conversation:tohex() .. ", attempt " .. tostring(attempt) .. ", " .. counts.words .. more
end

dissect[0x06] = function(r, context) return request(r, context) end
dissect[0x09] = function(r, context) return request(r, context) end

dissect[0x07] = function(r, context)
    local conversation = r:number(f.conversation, 8, "an acceptance's conversation")
    r:number(f.attempt, 8, "an acceptance's attempt")
    local counts = standing(r)
    begin_counting(context, counts)
    local more = stream_count(r)
    r:finish("an acceptance")
    if counts == nil then return "" end
    return "conversation " .. conversation:tohex() .. ", " .. counts.words .. more
end

dissect[0x08] = function(r)
    local conversation = r:number(f.conversation, 8, "a refusal's conversation")
    local code = r:number(f.refusal_code, 1, "a refusal's code")
    r:number(f.retry_after, 4, "a refusal's retry time")
    local words = r:text(f.words, "a refusal's words")
    r:finish("a refusal")
    if code == nil then return "" end
    return (refusal_codes[code] or refusal_codes[0]) .. ((words or "") ~= "" and ": " .. words or "")
end

dissect[0x0A] = function(r)
    local kind = r:number(f.pair_kind, 1, "a pairing message's kind")
    if kind == nil then return "" end
    if kind >= 1 and kind <= 3 then
        local value = r:take(32, "a pairing value")
        if value ~= nil then r.tree:add(f.pair_value, value) end
    elseif kind == 5 then
        r:number(f.pair_refusal, 1, "the reason of a refused pairing")
    elseif kind ~= 4 then
        -- It is from a later version: it is refused, and breaks no rule.
        return "message of kind " .. kind
    end
    r:finish("a pairing message")
    return pairing_kinds[kind]
end

dissect[0x80] = function(r)
    local count = r:left()
    if count > 4096 then r:fail("an invitation's context of " .. count .. " bytes") end
    if count > 0 then r.tree:add(f.context, r.tvb:range(r.position)) end
    return count .. " bytes of context, of an invitation that is given up"
end

-- A token, with which somebody is introduced. Returns it in words; nil if it has another form.
local function introduction_token(r, count)
    if count ~= 112 then
        local other = count > 0 and r:take(count, "a token")
        if other then r.tree:add(f.other_token, other) end
        return nil
    end
    local key = r:take(32, "the key of a token")
    if key ~= nil then r.tree:add(f.token_key, key) end
    r:number(f.nonce, 8, "the nonce of a token")
    local number = r:number(f.token_number, 8, "the number of a token")
    local signature = r:take(64, "the signature of a token")
    if signature == nil then return nil end
    r.tree:add(f.token_signature, signature)
    return "number " .. tostring(number)
end

dissect[0x81] = function(r)
    local count = r:left()
    if count > 512 then r:fail("an introduction of " .. count .. " bytes") end
    return introduction_token(r, count) or count .. " bytes"
end

local function spoken_peer(r)
    local bytes = r:take(32, "an introduced PeerID")
    if bytes == nil then return "?" end
    local id = base32(bytes:bytes())
    r.tree:add(f.spoken_peer, bytes, id)
    return id:sub(1, 8)
end

local function advertisement(r)
    local count = r:number(f.advertisement_length, 2, "a member's advertisement")
    if count == nil then return "?" end
    if count > 1024 then r:fail("a member's advertisement has " .. count .. " bytes, the limit is 1024") end
    local last = r.position + count
    r:text(f.spoken_service, "a member's service")
    local words = r:text(f.spoken_name, "a member's name") or "?"
    while not r.broken and r.position < last do
        local start = r.position + 1
        local pair = r:text(f.spoken_pair, "a member's pair")
        if pair ~= nil and pair:sub(1, 3) == "id=" then
            r.tree:add(f.spoken_peer, r.tvb:range(start + 3, #pair - 3), pair:sub(4))
            words = words .. " " .. pair:sub(4, 11)
        end
    end
    if r.position > last then r:fail("a member without a valid advertisement") end
    return words
end

local function addresses(r)
    local count = r:number(f.address_count, 1, "the number of addresses") or 0
    if count > 8 then r:fail(count .. " addresses of one peer") end
    for _ = 1, count do
        if r:text(f.address, "an address") == nil then break end
    end
end

local function flags(r, relay)
    local range = r:take(1, "the flags of a member")
    if range == nil then return "" end
    r.tree:add(f.in_mesh, range)
    r.tree:add(f.relayed, range)
    local value = range:uint()
    return (value % 2 == 1 and ", in the mesh" or "") .. (math.floor(value / 2) % 2 == 1 and relay or ""), range
end

local record_content = {}

record_content[1] = function(r)
    local words, range = flags(r, ", may be relayed")
    if range ~= nil then
        r.tree:add(f.asks_for_paths, range)
        if math.floor(range:uint() / 4) % 2 == 1 then words = words .. ", asks for paths" end
    end
    r:number(f.nonce, 8, "the number of a presence")
    local peer = advertisement(r)
    addresses(r)
    return "here " .. peer .. words
end

record_content[2] = function(r)
    local words = flags(r, ", relayed")
    return "member " .. advertisement(r) .. words
end

record_content[3] = function(r) return "gone " .. spoken_peer(r) end
record_content[4] = function(r) return "ask for " .. spoken_peer(r) end

record_content[5] = function(r)
    local peer = spoken_peer(r)
    addresses(r)
    local count = r:number(f.token_length, 2, "a token")
    if count ~= nil then
        if count > 512 then r:fail("a token has " .. count .. " bytes, the limit is 512") end
        introduction_token(r, count)
    end
    return "introduction to " .. peer
end

record_content[6] = function(r)
    local peer = spoken_peer(r)
    local scheme = r:text(f.path_scheme, "the transport of a path") or "?"
    local carriers = r:number(f.path_has_carrier, 1, "whether a path has a carrier")
    if carriers == 1 and scheme ~= "" then return "path to " .. peer .. " over " .. scheme .. " through " .. spoken_peer(r) end
    if carriers ~= 0 then r:fail("whether a path has a carrier") end
    if scheme == "" then return "path to " .. peer .. " is interrupted" end
    return "path to " .. peer .. " over " .. scheme
end

-- Reads the records of a message of introductions, which is there as a whole. Returns them in words.
local function introduction_records(r)
    local words = ""
    while not r.broken and r:left() > 0 do
        local kind = r:number(f.record_kind, 1, "the kind of an introduction's record")
        local count = r:number(f.record_length, 2, "the length of an introduction's record")
        if count == nil then break end
        local read = record_content[kind]
        local content = r:take(count, "an introduction's record")
        if r.broken then break end
        if read == nil then
            if content ~= nil then r.tree:add(f.record_bytes, content) end
        else
            local inner = reader(content and content:tvb() or nil, r.tree)
            words = words .. ", " .. read(inner)
            inner:finish("an introduction's record")
        end
    end
    return words
end

-- Returns the number of the message that begins here, and advances the lane's counter.
local function message_number(context, lane)
    local place = context.number .. "/" .. context.offset
    local row = context.side .. "/" .. lane
    if context.first_pass and context.state.next[row] ~= nil then
        context.state.numbers[place] = context.state.next[row]
        context.state.next[row] = context.state.next[row] + 1
    end
    return context.state.numbers[place]
end

-- Reads the kind of a message, which is not 0.
local function message_kind(r)
    local kind = r:number(f.message_kind, 1, "a message's kind")
    if kind == 0 then r:fail("a message of the kind 0") end
    local name = kinds[kind] and " (" .. kinds[kind] .. ")" or ""
    return ", kind " .. (kind or "?") .. name, kind
end

local function on_lane(lane, kind)
    return function(r, context)
        r.tree:add(f.lane, lane):set_generated()
        local words = lanes[lane]
        if kind ~= "piece" then
            local number = message_number(context, lane)
            if number ~= nil then
                r.tree:add(f.number, number):set_generated()
                words = words .. " " .. tostring(number)
            end
        end
        if kind == "begin" then
            local size = r:number(f.message_size, 4, "a message's size")
            if size == 0 then r:fail("a message of no bytes in pieces") end
            if r:left() > 0 then words = words .. (message_kind(r)) end
            r:finish("a message's beginning")
            return words .. ", " .. (size or "?") .. " bytes follow"
        end
        -- What was not captured as a whole cannot be read.
        local is_whole = r.length == context.length
        if kind == "kind-message" and (is_whole or r:left() > 0) then
            local more, layer = message_kind(r)
            words = words .. more
            if layer == 2 and is_whole then
                return words .. introduction_records(r) .. ", " .. context.length .. " bytes"
            end
        end
        if kind == "piece" and r:left() == 0 and context.length == 0 then r:fail("a piece without bytes") end
        if r:left() > 0 then r.tree:add(f.payload, r.tvb:range(r.position)) end
        return words .. ", " .. context.length .. " bytes"
    end
end

for lane = 0, 1 do
    dissect[0x10 + lane] = on_lane(lane, "message")
    dissect[0x12 + lane] = on_lane(lane, "begin")
    dissect[0x14 + lane] = on_lane(lane, "piece")
    dissect[0x16 + lane] = on_lane(lane, "kind-message")
end

dissect[0x18] = function(r, context)
    if r.length < 4 and r.length < context.length then return context.length .. " bytes" end
    local number = r:number(f.stream, 4, "a stream's number")
    if number == nil then return "" end
    if context.length == 4 then r:fail("a stream's frame without bytes") end
    if r:left() > 0 then r.tree:add(f.payload, r.tvb:range(r.position)) end
    return "stream " .. number .. ", " .. (context.length - 4) .. " bytes"
end

dissect[0x19] = function(r)
    local number = r:number(f.stream, 4, "a stream's number")
    local kind = r:number(f.stream_kind, 1, "what a control frame says of its stream")
    if kind == nil then return "" end
    local words = ""
    if kind == 0 then
        words = r:text(f.stream_name, "a stream's name") or ""
    elseif kind == 6 then
        local purpose = r:number(f.stream_purpose, 1, "what a stream is for")
        local name = r:text(f.stream_name, "a stream's name") or ""
        words = (stream_purposes[purpose] or "?") .. (name ~= "" and ", " .. name or "")
        if purpose ~= nil and stream_purposes[purpose] == nil then
            r:fail("a stream for the purpose " .. purpose)
        end
        local peer = purpose == 2 and name:match("^%a+:(%w+)$")
        if peer then r.tree:add(f.relay_peer, peer):set_generated() end
    elseif kind == 1 then
        words = tostring(r:number(f.stream_credit, 8, "a stream's credit") or "?") .. " bytes in all"
    elseif kind == 3 or kind == 4 then
        words = r:text(f.words, "why a stream was given up") or ""
    elseif kind > 6 then
        r:fail("a control frame of the unknown kind " .. kind)
    end
    r:finish("a stream's control frame")
    local what = "stream " .. number .. ", " .. (stream_kinds[kind] or "?")
    return words == "" and what or what .. ": " .. words
end

dissect[0x1A] = function(r)
    r:number(f.connection, 8, "the connection of a datagram path")
    local longest = r:number(f.longest_packet, 2, "the longest packet of a datagram path")
    if longest ~= nil and longest < 1200 then
        r:fail("a datagram path for packets of at most " .. longest .. " bytes")
    end
    local count = r:number(f.place_length, 1, "the place of a datagram path")
    if count ~= nil and count > 64 then r:fail("a datagram path's place of " .. count .. " bytes") end
    local place = count ~= nil and count > 0 and r:take(count, "the place of a datagram path")
    if place then r.tree:add(f.place, place) end
    return "takes packets of up to " .. (longest or "?") .. " bytes beside the link"
end

dissect[0x20] = function(r, context)
    if r:left() > 0 then r.tree:add(f.payload, r.tvb:range(r.position)) end
    return context.length .. " bytes"
end

-- The frames whose beginning is useful even if not all of it was captured.
local readable_in_part = {
    [0x10] = true, [0x11] = true, [0x14] = true, [0x15] = true, [0x16] = true, [0x17] = true, [0x18] = true,
    [0x20] = true,
}

local function dissect_preface(tvb, tree, context)
    local preface = tree:add(nigh, tvb, "Nigh preface")
    preface:add(f.magic, tvb:range(0, 4))
    preface:add(f.layout, tvb:range(4, 1))
    local security = preface:add(f.security, tvb:range(5, 1))
    security:add(f.plaintext, tvb:range(5, 1))
    security:add(f.tls13, tvb:range(5, 1))
    if tvb:range(0, 4):string() ~= "NIGH" then
        preface:add_proto_expert_info(violation, "the other side does not speak Nigh")
    elseif tvb:range(4, 1):uint() ~= 1 then
        preface:add_proto_expert_info(violation, "unknown preface layout " .. tvb:range(4, 1):uint())
    end
    if context.first_pass then context.state.preface[context.side] = tvb:range(5, 1):uint() end
    return "preface"
end

-- Dissects one frame. `tvb` holds its header and as much of its payload as there is.
local function dissect_frame(tvb, tree, context)
    local length = tvb:range(0, 3):uint()
    local type = tvb:range(3, 1):uint()
    local name = frame_names[type]
    local held = tvb:len() - 4
    local subtree = tree:add(nigh, tvb, "Nigh " .. (name or string.format("frame of type 0x%02x", type)))
    subtree:add(f.length, tvb:range(0, 3))
    subtree:add(f.type, tvb:range(3, 1))
    context.length = length
    local hello = context.state.hello[context.side]
    if type ~= 0x01 and type ~= 0x02 and context.knows_beginning
        and (hello == nil or hello > context.number) then
        subtree:add_proto_expert_info(violation, "a frame before the hello")
    end
    if hello == nil and length > hello_limit and context.knows_beginning then
        subtree:add_proto_expert_info(
            violation, "a frame of " .. length .. " bytes before the hello, the limit is " .. hello_limit)
    end
    local limit = context.state.limit[1 - context.side]
    if hello ~= nil and limit ~= nil and length > limit then
        subtree:add_proto_expert_info(
            violation, "a frame of " .. length .. " bytes, the receiver takes " .. limit)
    end
    -- A hello counts even if not all of it was captured.
    if type == 0x01 and context.first_pass then context.state.hello[context.side] = hello or context.number end
    local payload = held > 0 and tvb:range(4):tvb() or nil
    local read = dissect[type]
    local words = ""
    if held < length then subtree:add_proto_expert_info(shortened) end
    if read == nil then
        if type < 0x80 then
            subtree:add_proto_expert_info(violation, "unknown critical frame type " .. type)
        else
            subtree:add_proto_expert_info(skipped)
        end
        if held > 0 then subtree:add(f.payload, tvb:range(4)) end
    elseif held < length and not readable_in_part[type] then
        if held > 0 then subtree:add(f.payload, tvb:range(4)) end
    else
        words = read(reader(payload, subtree), context)
    end
    name = name or string.format("0x%02x", type)
    if words ~= "" then subtree:append_text(", " .. words) end
    return words == "" and name or name .. " (" .. words .. ")"
end

-- Reads the order of a message in packets. Returns it in words.
local function order(r)
    local number = r:number(f.order, 1, "a message's order")
    if number == nil then return "?" end
    if number < 2 then return orders[number] end
    r.tree:add(f.key, number - 2):set_generated()
    return "newest of key " .. (number - 2)
end

local function rest_of_message(r)
    if r:left() > 0 then r.tree:add(f.payload, r.tvb:range(r.position)) end
end

local packet_content = {}

packet_content[1] = function(r, context)
    local number = r:number(f.packet_token, 8, "a probe's token")
    if number == nil then return "" end
    local key = context.side .. number:tohex()
    if context.first_pass then context.state.probes[key] = context.number end
    return "token " .. number:tohex()
end

packet_content[2] = function(r, context)
    local number = r:number(f.packet_token, 8, "an answer's token")
    if number == nil then return "" end
    -- A token is sent several times if no answer comes; this is the last of its probes.
    local place = context.number .. "/" .. context.offset
    if context.first_pass then
        context.state.answers[place] = context.state.probes[(1 - context.side) .. number:tohex()]
    end
    local probe = context.state.answers[place]
    if probe ~= nil then r.tree:add(f.probe_in, probe):set_generated() end
    return "token " .. number:tohex()
end

packet_content[3] = function(r, context)
    local words = order(r)
    rest_of_message(r)
    return context.length - 2 .. " bytes, " .. words
end

packet_content[4] = function(r, context)
    local words = order(r)
    local message = r:number(f.part_of, 4, "a fragment's message")
    local index = r:number(f.part_index, 1, "a fragment's index")
    local count = r:number(f.part_count, 1, "a fragment's count")
    if count == nil then return "" end
    if index >= count or context.length <= 8 then r:fail("a fragment that belongs to no message") end
    rest_of_message(r)
    return string.format(
        "part %d of %d of message %d, %d bytes, %s", index + 1, count, message, context.length - 8, words)
end

packet_content[5] = function(r)
    local highest = r:number(f.report_highest, 8, "a report's highest number")
    local delay = r:number(f.report_delay, 4, "a report's delay")
    local received = r:number(f.report_received, 8, "a report's count")
    if received == nil then return "" end
    return tostring(received) .. " packets have come, " .. tostring(highest) .. " is the highest, "
        .. string.format("%.3f ms ago", delay / 1000)
end

-- The contents whose beginning is useful even if not all of it was captured, with how much is needed.
local packet_beginning = { [3] = 2, [4] = 8 }

-- Dissects a datagram, which is opened already: its header, and as much of its content as there is.
local function dissect_packet(tvb, length, tree, context)
    local subtree = tree:add(nigh, tvb, "Nigh packet beside the link")
    subtree:add(f.connection, tvb:range(0, 8))
    subtree:add(f.packet_number, tvb:range(8, 8))
    local words = "packet " .. tostring(tvb:range(8, 8):uint64())
    local held = tvb:len() - 16
    context.length = length
    if held < length then subtree:add_proto_expert_info(shortened) end
    if length == 0 then
        subtree:add_proto_expert_info(violation, "the kind of a packet is cut short")
        return words
    end
    if held == 0 then return words end
    local kind = tvb:range(16, 1):uint()
    subtree:add(f.packet_kind, tvb:range(16, 1))
    words = words .. ", " .. (packet_kinds[kind] or string.format("0x%02x", kind))
    local read = packet_content[kind]
    if read == nil then
        subtree:add_proto_expert_info(ignored)
        return words
    end
    if held < length and held < (packet_beginning[kind] or length) then return words end
    local r = reader(held > 1 and tvb:range(17):tvb() or nil, subtree)
    return words .. " (" .. read(r, context) .. ")"
end

-- Dissects a packet of `nigh trace --pcapng`.
function nigh.dissector(tvb, pinfo, tree)
    if tvb:len() < 16 or tvb:range(0, 1):uint() ~= 1 then return 0 end
    local header = tvb:range(4, 4):uint()
    if header < 16 or header > tvb:len() then return 0 end
    pinfo.cols.protocol = "NIGH"
    local direction = tvb:range(1, 1):uint()
    local capture = tree:add(nigh, tvb:range(0, header), "Captured by nigh trace")
    capture:add(f.capture_version, tvb:range(0, 1))
    capture:add(f.direction, tvb:range(1, 1))
    capture:add(f.capture_kind, tvb:range(2, 1))
    capture:add(f.dialled, tvb:range(3, 1))
    capture:add(f.proven, tvb:range(3, 1))
    capture:add(f.capture_length, tvb:range(4, 4))
    capture:add(f.link, tvb:range(8, 8))
    local link = tvb:range(8, 8):uint64():tonumber()
    local state = state_of("link " .. link)
    local context = {
        state = state, side = direction == 1 and 1 or 0, number = pinfo.number, offset = 0,
        time = pinfo.rel_ts, first_pass = not pinfo.visited, knows_beginning = true,
    }
    local here, there = "this side", "link " .. link
    pinfo.cols.src = direction == 1 and here or there
    pinfo.cols.dst = direction == 1 and there or here
    local rest = tvb:len() - header
    local info
    if tvb:range(2, 1):uint() == 0 and rest >= 8 then
        info = dissect_preface(tvb:range(header, 8):tvb(), tree, context)
    elseif tvb:range(2, 1):uint() == 1 and rest >= 4 then
        info = dissect_frame(tvb:range(header):tvb(), tree, context)
    elseif tvb:range(2, 1):uint() == 2 and rest >= 16 then
        info = dissect_packet(tvb:range(header):tvb(), tvb:reported_len() - header - 16, tree, context)
    else
        capture:add_proto_expert_info(violation, "neither a preface, nor a frame, nor a packet")
        info = "?"
    end
    pinfo.cols.info = "link " .. link .. ": " .. info
    return tvb:len()
end

-- Plain TCP.

local stream_field = Field.new("tcp.stream")

local function is_preface(tvb)
    return tvb:len() >= 8 and tvb:range(0, 4):string() == "NIGH" and tvb:range(4, 1):uint() == 1
end

-- Returns the strongest kind of security that both accept; nil before both prefaces have come.
local function security_of(state)
    local ours, theirs = state.preface[0], state.preface[1]
    if ours == nil or theirs == nil then return nil end
    local function has(number, bit) return math.floor(number / bit) % 2 == 1 end
    if has(ours, 2) and has(theirs, 2) then return "tls" end
    if has(ours, 1) and has(theirs, 1) then return "plain" end
    return "none"
end

-- Decides by both prefaces or, before both have come, by the sender's own: a side that accepts only TLS begins it at
-- once.
local function is_tls(state, side)
    local agreed = security_of(state)
    if agreed ~= nil then return agreed == "tls" end
    return state.preface[side] == 2
end

local stream = Proto("nigh_tcp", "Nigh Session Protocol over TCP")

function stream.dissector(tvb, pinfo, tree)
    local info = stream_field()
    local state = state_of("stream " .. (info and info.value or 0))
    if state.dialler == nil then state.dialler = pinfo.src_port .. "/" .. tostring(pinfo.src) end
    local side = state.dialler == pinfo.src_port .. "/" .. tostring(pinfo.src) and 1 or 0
    pinfo.cols.protocol = "NIGH"
    local offset = 0
    local infos = {}
    while offset < tvb:len() do
        local left = tvb:len() - offset
        local context = {
            state = state, side = side, number = pinfo.number, offset = tvb:offset() + offset, time = pinfo.rel_ts,
            first_pass = not pinfo.visited, knows_beginning = true,
        }
        local rest = tvb:range(offset):tvb()
        local begins = left >= 4 and rest:range(0, 4):string() == "NIGH"
        if begins and left < 8 then
            pinfo.desegment_offset = offset
            pinfo.desegment_len = 8 - left
            return tvb:len()
        end
        if begins then
            infos[#infos + 1] = dissect_preface(rest:range(0, 8):tvb(), tree, context)
            offset = offset + 8
        elseif is_tls(state, side) then
            Dissector.get("tls"):call(rest, pinfo, tree)
            return tvb:len()
        else
            if left < 4 then
                pinfo.desegment_offset = offset
                pinfo.desegment_len = DESEGMENT_ONE_MORE_SEGMENT
                return tvb:len()
            end
            local whole = 4 + rest:range(0, 3):uint()
            if left < whole then
                pinfo.desegment_offset = offset
                pinfo.desegment_len = whole - left
                return tvb:len()
            end
            infos[#infos + 1] = dissect_frame(rest:range(0, whole):tvb(), tree, context)
            offset = offset + whole
        end
    end
    if #infos > 0 then pinfo.cols.info = table.concat(infos, ", ") end
    return tvb:len()
end

local function is_nigh(tvb, pinfo, tree)
    if not is_preface(tvb) then return false end
    pinfo.conversation = stream
    stream.dissector(tvb, pinfo, tree)
    return true
end

stream:register_heuristic("tcp", is_nigh)
DissectorTable.get("wtap_encap"):add(wtap.USER0, nigh)
