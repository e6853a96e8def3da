import Testing

@testable import NighCore

@Suite struct NighErrorTests {
    @Test func `An error is one sentence a person understands`() {
        let system = NighError(
            .advertising, .system(98, "port 4000: address already in use"), transport: "tcp")
        #expect("\(system)" == "advertising over tcp: port 4000: address already in use (98)")
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
    func `Every stage makes a sentence with every cause`(stage: NighError.Stage) {
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

    @Test func `The peer is filled in only if none was named`() {
        #expect(NighError(.connecting, .refused).about("Puma").peer == "Puma")
        #expect(NighError(.connecting, .refused, peer: "Ada").about("Puma").peer == "Ada")
        #expect(NighError(.connecting, .refused, peer: "Ada").about(nil).peer == "Ada")
    }
}
