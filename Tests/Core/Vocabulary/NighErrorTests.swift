import NighCore
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
            "conversing with Puma: nothing was received any more"
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
            "resuming with Puma: the other side has ended this conversation"
        ),
        (NighError(.pinging, .notConnected, peer: "Puma"), "pinging Puma: not connected"),
        (
            NighError(.advertising, .system(98, "port 4000: address already in use"), transport: "tcp"),
            "advertising over tcp: port 4000: address already in use (98)"
        ),
        (NighError(.starting, .closed), "starting: the session is closed"),
        (
            NighError(.configuring, .limit("peers", 8), advice: "raise `limits.peers`"),
            "configuring: the limit \"peers\" of 8 is reached; raise `limits.peers`"
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

    @Test func thePeerIsFilledInOnlyIfNoneWasNamed() {
        #expect(NighError(.connecting, .refused).about("Puma").peer == "Puma")
        #expect(NighError(.connecting, .refused, peer: "Ada").about("Puma").peer == "Ada")
        #expect(NighError(.connecting, .refused, peer: "Ada").about(nil).peer == "Ada")
    }
}
