import Glibc
import NighLoop

/// An eavesdropper records everything on the cable between two hosts, and reads it.
enum Eavesdropping {
    static let all = [
        Scenario(
            "overheard", "a capture of an encrypted conversation shows two prefaces and TLS 1.3",
            limit: .seconds(90)
        ) { lab throws(Failure) in try overhear(lab, isEncrypted: true) },
        Scenario(
            "overheard-unencrypted", "the same without encryption shows every word: the reader can read",
            limit: .seconds(90)
        ) { lab throws(Failure) in try overhear(lab, isEncrypted: false) },
        Scenario("overheard-tls12", "a certificate that TLS 1.2 shows is found by the same search") {
            lab throws(Failure) in try overhearTLS12(lab)
        },
    ]

    /// Bytes that an eavesdropper may search for.
    private struct Secret {
        let what: String
        let bytes: [UInt8]
        /// Whether multicast DNS announces it to everybody.
        var isAnnounced = false
        /// Whether peers send it to each other over their connection.
        var isSaid = true

        /// The whole and each half, because even a part must not be visible.
        var searches: [(words: String, bytes: ArraySlice<UInt8>)] {
            let middle = bytes.count / 2
            return [
                (what, bytes[...]), ("the first half of \(what)", bytes[..<middle]),
                ("the second half of \(what)", bytes[middle...]),
            ]
        }
    }

    private static let service = "overheard-lab"
    private static let info = "place=under the old walnut tree"
    private static let prefaceByteCount = 8
    /// The length of the messages that `Lab.exchangeMessages` sends.
    private static let messageByteCount = 64
    /// The first bytes of an Ed25519 key in every certificate (RFC 8410).
    private static let keyBeginning: [UInt8] = [
        0x30, 0x2A, 0x30, 0x05, 0x06, 0x03, 0x2B, 0x65, 0x70, 0x03, 0x21,
    ]
    /// The bytes of the name in each of our certificates.
    private static let certificateName: [UInt8] =
        [0x06, 0x03, 0x55, 0x04, 0x03] + [0x0C, 0x04] + Array("nigh".utf8)

    private static func overhear(_ lab: Lab, isEncrypted: Bool) throws(Failure) {
        let hosts = [try lab.host("puma"), try lab.host("lynx")]
        let capture = try Capture(of: hosts[0], in: lab)
        var options = Findings.embedded
        options.service = service
        options.info = [info]
        options.isEncrypted = isEncrypted
        let puma = try hosts[0].peer("Puma who sleeps in the afternoon", options)
        let lynx = try hosts[1].peer("Lynx who never comes down again", options)
        try lab.find(puma, lynx)
        // Twice, because the second handshake is another one: it uses a ticket of the first.
        for _ in 0..<2 {
            puma.invite(lynx)
            try lab.connection(of: puma, lynx)
            try lab.exchangeMessages(puma, lynx)
            puma.leave(lynx)
            try lab.wait(for: "them to part") { !puma.isConnected(to: lynx) && !lynx.isConnected(to: puma) }
        }
        for peer in [puma, lynx] { peer.quit() }
        try capture.end(withACallTo: hosts[1])
        let connections = try capture.connections()
        let whole = connections.filter { $0.said(inAnswer: true).count > prefaceByteCount }
        try lab.check("two connections or more were captured to their end", whole.count >= 2)
        let secrets = try secrets(of: puma, for: lynx) + secrets(of: lynx, for: puma) + commonSecrets
        try searchAnnouncements(lab, capture, secrets)
        if isEncrypted {
            for connection in connections {
                lab.step("connection \(connection.number)")
                try checkSilence(lab, connection, secrets)
            }
            for connection in whole { try checkEncryption(lab, capture, connection) }
        } else {
            try checkPlaintext(lab, connections, secrets)
        }
    }

    private static var commonSecrets: [Secret] {
        [
            Secret(what: "the service", bytes: Array(service.utf8), isAnnounced: true),
            Secret(what: "the discovery info", bytes: Array(info.utf8), isAnnounced: true, isSaid: false),
            Secret(what: "a certificate's key", bytes: keyBeginning, isSaid: false),
            Secret(what: "a certificate's name", bytes: certificateName, isSaid: false),
        ]
    }

    private static func secrets(of peer: PeerProcess, for other: PeerProcess) throws(Failure) -> [Secret] {
        guard let id = PeerID(peer.id), let run = UInt64(peer.run, radix: 16) else {
            throw Failure("\(peer.label) has no PeerID or no run")
        }
        return [
            Secret(what: "\(peer.name)'s name", bytes: Array(peer.name.utf8), isAnnounced: true),
            Secret(what: "\(peer.name)'s PeerID", bytes: id.bytes),
            Secret(
                what: "\(peer.name)'s PeerID in letters", bytes: Array(peer.id.utf8), isAnnounced: true,
                isSaid: false),
        ]
            + peer.sent(to: other).map { number in
                let message = NumberedMessage(run: run, number: number).bytes(size: messageByteCount)
                return Secret(what: "message \(number) of \(peer.name)", bytes: message)
            }
    }

    /// Checks that public data is found in the announcements. This shows that the search works and the documentation is
    /// right.
    private static func searchAnnouncements(
        _ lab: Lab, _ capture: Capture, _ secrets: [Secret]
    ) throws(Failure) {
        let announcements = try capture.announcements()
        for secret in secrets where secret.isAnnounced {
            try lab.check("multicast DNS tells \(secret.what)", holds(announcements, secret.bytes[...]))
        }
    }

    /// Also checks connections that were given up because another was faster. In these, one side may have sent nothing.
    private static func checkSilence(
        _ lab: Lab, _ connection: Capture.Connection, _ secrets: [Secret]
    ) throws(Failure) {
        let streams = [connection.said(inAnswer: false), connection.said(inAnswer: true)]
        let preface: [UInt8] = [0x4E, 0x49, 0x47, 0x48, 1, 2, 0, 0]
        try lab.check(
            "both begin with a preface, of \(streams[0].count) and \(streams[1].count) bytes",
            streams.allSatisfy { $0.isEmpty || $0.starts(with: preface) })
        for secret in secrets {
            for search in secret.searches where streams.contains(where: { holds($0, search.bytes) }) {
                throw Failure("\(search.words) is in the clear")
            }
        }
        try lab.check("none of \(secrets.count) secrets is in the clear", true)
    }

    private static func checkEncryption(
        _ lab: Lab, _ capture: Capture, _ connection: Capture.Connection
    ) throws(Failure) {
        lab.step("records of connection \(connection.number)")
        let streams = [connection.said(inAnswer: false), connection.said(inAnswer: true)]
        let verdict = try capture.verdict(on: connection, behind: prefaceByteCount)
        try lab.check("tshark sees TLS 1.3 and nothing else: \(verdict)", verdict.protocols == ["TLSv1.3"])
        try lab.check(
            "every byte behind the prefaces is part of a record",
            verdict.byteCounts.asking == streams[0].count - prefaceByteCount
                && verdict.byteCounts.answering == streams[1].count - prefaceByteCount)
        try lab.check(
            "two records can be read, and neither is a certificate",
            verdict.contents == ["Client Hello", "Server Hello", "Application Data"])
    }

    private static func checkPlaintext(
        _ lab: Lab, _ connections: [Capture.Connection], _ secrets: [Secret]
    ) throws(Failure) {
        let streams = connections.flatMap { [$0.said(inAnswer: false), $0.said(inAnswer: true)] }
        let said = secrets.filter(\.isSaid)
        for secret in said {
            for search in secret.searches where !streams.contains(where: { holds($0, search.bytes) }) {
                throw Failure("\(search.words) is not found where nothing is encrypted")
            }
        }
        try lab.check("all of \(said.count) secrets are in the clear", true)
    }

    private static func holds(_ bytes: [UInt8], _ part: ArraySlice<UInt8>) -> Bool {
        guard let first = part.first else { return true }
        return bytes.indices.contains { bytes[$0] == first && bytes[$0...].starts(with: part) }
    }

    private static func overhearTLS12(_ lab: Lab) throws(Failure) {
        let (puma, lynx) = (try lab.host("puma"), try lab.host("lynx"))
        let capture = try Capture(of: puma, in: lab)
        try puma.run([
            "openssl", "req", "-x509", "-newkey", "ed25519", "-nodes", "-subj", "/CN=nigh", "-utf8",
            "-keyout",
            "/run/key.pem", "-out", "/run/certificate.pem",
        ])
        let server = try puma.start(
            [
                "openssl", "s_server", "-tls1_2", "-accept", "4711", "-key", "/run/key.pem", "-cert",
                "/run/certificate.pem", "-naccept", "1",
            ], mayEnd: true)
        var listens = false
        server.onLine = { _, line in if line.contains("ACCEPT") { listens = true } }
        try lab.wait(for: "the server to listen") { listens }
        try lynx.run(["openssl", "s_client", "-tls1_2", "-connect", "\(puma.address()):4711"])
        try capture.end(withACallTo: lynx)
        let said = try capture.connections().flatMap { $0.said(inAnswer: true) }
        try lab.check("the certificate's key is found", holds(said, keyBeginning[...]))
        try lab.check("the certificate's name is found", holds(said, certificateName[...]))
    }
}
