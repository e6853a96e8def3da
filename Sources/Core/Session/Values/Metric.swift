/// A count or a measurement of a session, with all that a log or a metrics system shows besides the number.
public struct Metric: Hashable, Sendable {
    /// The name, which never changes: `bytes_sent`.
    public let name: String
    /// The things that the value counts, or the unit in which it is measured.
    public let unit: String
    /// The meaning of the value, in one line.
    public let meaning: String
    /// Whether the value only grows while the session lives. Others go up and down.
    public let isCounter: Bool
    /// The `peer`, by its PeerID, or the `cause` that the value belongs to, if there are several of that name.
    public let labels: [String: String]
    /// The value now.
    public let value: Double
}

extension Metric {
    /// The description of a value, and how to read it.
    package struct Definition<Source>: Sendable {
        package let name: String
        package let unit: String
        package let meaning: String
        package let isCounter: Bool
        /// Reads the values by cause; a value without a cause stands alone. Nil if there is none now.
        let values: @Sendable (Source) -> [(cause: String?, value: Double)]

        fileprivate init(
            _ name: String, _ unit: String, isCounter: Bool = true, _ meaning: String,
            _ value: @escaping @Sendable (Source) -> Int?
        ) {
            self.init(name, unit, meaning, isCounter) { source in
                value(source).map { [(nil, Double($0))] } ?? []
            }
        }

        fileprivate init(
            byCause name: String, _ unit: String, _ meaning: String,
            _ counts: @escaping @Sendable (Source) -> [String: Int]
        ) {
            self.init(name, unit, meaning, true) { source in
                counts(source).sorted { $0.key < $1.key }.map { ($0.key, Double($0.value)) }
            }
        }

        fileprivate init(
            seconds name: String, _ meaning: String, _ value: @escaping @Sendable (Source) -> Duration?
        ) {
            self.init(name, "seconds", meaning, false) { source in
                value(source).map { [(nil, $0 / .seconds(1))] } ?? []
            }
        }

        private init(
            _ name: String, _ unit: String, _ meaning: String, _ isCounter: Bool,
            values: @escaping @Sendable (Source) -> [(cause: String?, value: Double)]
        ) {
            self.name = name
            self.unit = unit
            self.meaning = meaning
            self.isCounter = isCounter
            self.values = values
        }

        fileprivate func read(_ source: Source, of peer: PeerID? = nil) -> [Metric] {
            values(source).map { cause, value in
                var labels: [String: String] = [:]
                labels["peer"] = peer?.description
                labels["cause"] = cause
                return Metric(
                    name: name, unit: unit, meaning: meaning, isCounter: isCounter, labels: labels,
                    value: value)
            }
        }
    }

    /// The values of a session itself.
    package static let ofSession: [Definition<SessionStatistics>] = [
        .init("peers_connected", "peers", isCounter: false, "peers with a link now") { statistics in
            statistics.peers.values.count { $0.link != nil }
        },
        .init("dials", "dials", "attempts to open a pipe") { $0.dials },
        .init(byCause: "dials_failed", "dials", "dials that opened no pipe") { $0.dialsFailed },
        .init("pipes_accepted", "pipes", "pipes that others opened") { $0.pipesAccepted },
        .init("pipes_refused", "pipes", "accepted pipes that were closed at a limit") { $0.pipesRefused },
        .init(byCause: "links_ended", "links", "links that ended") { $0.linksEnded },
        .init(byCause: "refusals", "requests", "requests of peers that this session refused") {
            $0.refusals
        },
        .init("sightings_ignored", "sightings", "discovered routes that were ignored at a limit") {
            $0.sightingsIgnored
        },
        .init(byCause: "conversations_ended", "conversations", "conversations that ended") {
            $0.conversationsEnded
        },
    ]

    /// The values of each peer.
    package static let ofPeer: [Definition<PeerStatistics>] = [
        .init("messages_sent", "messages", "reliable messages accepted for sending") { $0.messagesSent },
        .init("bytes_sent", "bytes", "payload of reliable messages accepted for sending") { $0.bytesSent },
        .init("messages_received", "messages", "reliable messages received") { $0.messagesReceived },
        .init("bytes_received", "bytes", "payload of reliable messages received") { $0.bytesReceived },
        .init("messages_resent", "messages", "messages sent again on another link") { $0.messagesResent },
        .init("unreliable_sent", "messages", "unreliable messages written to a link") { $0.unreliableSent },
        .init("unreliable_dropped", "messages", "unreliable messages that found no room") {
            $0.unreliableDropped
        },
        .init("unreliable_received", "messages", "unreliable messages received") { $0.unreliableReceived },
        .init("unreliable_unread", "messages", "unreliable messages dropped because nobody read") {
            $0.unreliableUnread
        },
        .init("streams_opened", "streams", "streams that either side opened") { $0.streamsOpened },
        .init("stream_bytes_sent", "bytes", "bytes of streams sent") { $0.streamBytesSent },
        .init("stream_bytes_received", "bytes", "bytes of streams received") { $0.streamBytesReceived },
        .init("reconnects", "changes", "changes of the conversation to another link") { $0.reconnects },
        .init("bytes_waiting", "bytes", isCounter: false, "accepted and not acknowledged yet") {
            $0.bytesWaiting
        },
        .init("bytes_unread", "bytes", isCounter: false, "received and not read by the program yet") {
            $0.bytesUnread
        },
        .init(seconds: "round_trip", "smoothed round trip of the link in use") {
            $0.link?.roundTrip.smoothed
        },
        .init("packets_sent", "packets", "packets sent beside the link in use") { $0.datagrams?.packetsSent },
        .init("packets_received", "packets", "packets received beside the link in use") {
            $0.datagrams?.packetsReceived
        },
        .init("packets_lost", "packets", "packets beside the link in use that did not arrive") {
            $0.datagrams?.packetsLost
        },
    ]
}

extension SessionStatistics {
    /// All values with their names: first those of the session, then those of each peer.
    var metrics: [Metric] {
        Metric.ofSession.flatMap { $0.read(self) }
            + peers.sorted { $0.key < $1.key }.flatMap { id, peer in
                Metric.ofPeer.flatMap { $0.read(peer, of: id) }
            }
    }
}
