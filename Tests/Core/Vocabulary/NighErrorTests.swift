import Foundation
@testable import NighCore
import Testing

@Suite struct NighErrorTests {
    private static let expected = PeerID(bytes: [UInt8](repeating: 0, count: 32))!
    private static let found = PeerID(bytes: [UInt8](repeating: 255, count: 32))!

    @Test(arguments: [
        (
            NighError(
                .connecting, .unavailable("the adapter is powered off"), peer: "Puma", transport: "bluetooth",
                advice: "`bluetoothctl power on`"),
            "connecting to Puma over bluetooth: the adapter is powered off; `bluetoothctl power on`"
        ),
        (NighError(.connecting, .timedOut, peer: "Puma"), "connecting to Puma: no answer in time"),
        (
            NighError(.conversing, .silent, peer: "Puma"),
            "in the conversation with Puma: nothing was received any more"
        ),
        (
            NighError(
                .securing, .wrongPeer(expected: expected, found: found), peer: "Puma", transport: "tcp"),
            "securing the link to Puma over tcp: 77777777 answered instead of aaaaaaaa"
        ),
        (
            NighError(
                .securing, .insecure(.certificateExpired), peer: "Puma",
                advice: "check the clocks of both devices"),
            "securing the link to Puma: the other side's certificate has expired; check the clocks of both devices"
        ),
        (
            NighError(.greeting, .noCommonVersion(ours: 2...3, theirs: 1...1), peer: "Puma"),
            "greeting Puma: no common protocol version: this side speaks 2 to 3, the other 1 to 1"
        ),
        (
            NighError(.inviting, .declined("the table is full"), peer: "Puma"),
            "inviting Puma: declined: the table is full"
        ),
        (NighError(.inviting, .declined(""), peer: "Puma"), "inviting Puma: declined"),
        (
            NighError(.sending, .messageTooLarge(size: 20, limit: 10), peer: "Puma"),
            "sending to Puma: the message has 20 bytes, the limit is 10"
        ),
        (
            NighError(.receiving, .protocolViolation("a frame of kind 0"), peer: "Puma"),
            "receiving from Puma: protocol violation: a frame of kind 0"
        ),
        (
            NighError(.resuming, .unknownConversation, peer: "Puma"),
            "resuming the conversation with Puma: the other side has ended this conversation"
        ),
        (NighError(.pinging, .notConnected, peer: "Puma"), "pinging Puma: not connected"),
        (
            NighError(.advertising, .system(98, "port 4000: address already in use"), transport: "tcp"),
            "advertising over tcp: port 4000: address already in use (98)"
        ),
        (NighError(.starting, .closed), "starting: the session is closed"),
        (
            NighError(.starting, .unavailable("there is no adapter"), transport: "bluetooth"),
            "starting bluetooth: there is no adapter"
        ),
        (NighError(.browsing, .unknownPeer, peer: "Lynx"), "looking for Lynx: no such peer is known"),
        (NighError(.browsing, .timedOut, transport: "tcp"), "looking for peers over tcp: no answer in time"),
        (
            NighError(.trusting, .unknownPeer, peer: "Lynx"),
            "looking for Lynx among the known peers: no such peer is known"
        ),
        (
            NighError(.configuring, .invalid("option \"prot\""), transport: "tcp"),
            "checking the settings of tcp: invalid option \"prot\""
        ),
        (
            NighError(.configuring, .limit("peers", 8), advice: "raise `limits.peers`"),
            "checking the settings: the limit \"peers\" of 8 is reached; raise `limits.peers`"
        ),
    ])
    func anErrorIsOneSentenceAPersonUnderstands(error: NighError, sentence: String) {
        #expect(error.description == sentence)
    }

    @Test func whenAllAttemptsFailedEachIsReported() {
        let error = NighError(
            .connecting, .allFailed, peer: "Puma", advice: "move closer",
            attempts: [
                NighError(.connecting, .refused, transport: "tcp"),
                NighError(.connecting, .unreachable, transport: "bluetooth"),
            ])
        #expect(
            error.description == """
                connecting to Puma: every attempt failed (connecting over tcp: nobody listens there; \
                connecting over bluetooth: the device cannot be reached); move closer
                """)
    }

    /// Every cause, with the details that it may have and without them.
    private static let causes: [NighError.Cause] =
        NighError.Cause.kinds + [
            .declined("the table is full"), .streamCancelled("enough"),
            .file(FileFault(.other, "it is gone")),
            .unsupported("streams"), .wrongService("chat"), .protocolViolation("a frame of kind 0"),
            .contractBroken(.eventsOnTheLoop, "a pipe was opened elsewhere"), .limit("peers", 8),
            .invalid("option \"prot\""), .unavailable("the adapter is powered off"), .system(98, "in use"),
        ]

    @Test(arguments: NighError.Stage.allCases)
    func everyStageMakesASentenceWithEveryCause(stage: NighError.Stage) {
        for cause in Self.causes {
            for (peer, transport, advice) in [
                (nil, nil, nil), ("Puma (abcdefgh)", nil, nil), (nil, "tcp", nil),
                ("Puma (abcdefgh)", "tcp", "move closer"),
            ] as [(String?, String?, String?)] {
                let error = NighError(stage, cause, peer: peer, transport: transport, advice: advice)
                let sentence = error.description
                let isPlain =
                    !sentence.contains("  ") && !sentence.contains(" :") && !sentence.contains(": :")
                    && !sentence.contains(": ;") && !sentence.contains("\"\"") && !sentence.hasSuffix(":")
                    && !sentence.hasSuffix(" ") && sentence.first?.isLowercase == true
                #expect(isPlain, "\(sentence)")
                for part in [peer, transport, advice].compactMap(\.self) {
                    #expect(sentence.contains(part), "\(sentence)")
                }
                #expect(sentence.split(separator: ": ").count > 1, "\(sentence)")
            }
        }
    }

    /// The text of the error puts the word "invalid" before the name: "invalid a message" is no sentence.
    @Test func whatIsInvalidIsNamedWithoutAnArticle() throws {
        let place = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../../../Sources")
        let files = try #require(FileManager.default.enumerator(at: place, includingPropertiesForKeys: nil))
        var found = 0
        for case let file as URL in files where file.pathExtension == "swift" {
            let text = try String(contentsOf: file, encoding: .utf8)
            for (_, words) in text.matches(of: /\.invalid\(\s*"([^"]*)/).map(\.output) {
                found += 1
                let first = words.split(separator: " ").first ?? ""
                let isName = !["a", "an", "the", "this", "these", "it", "no", "\\"].contains(first)
                #expect(isName, "\(file.lastPathComponent): invalid \(words)")
            }
        }
        #expect(found > 40)
    }

    @Test func thePeerIsFilledInOnlyIfNoneWasNamed() {
        #expect(NighError(.connecting, .refused).about("Puma").peer == "Puma")
        #expect(NighError(.connecting, .refused, peer: "Ada").about("Puma").peer == "Ada")
        #expect(NighError(.connecting, .refused, peer: "Ada").about(nil).peer == "Ada")
    }
}
