import Nigh
import Testing

@Suite struct EmbeddingTests {
    /// The last case has a transport that cannot start, and works over the other one. The cases run one after the
    /// other, because those on the same network would find each other.
    @Test(
        .serialized, .timeLimit(.minutes(1)),
        arguments: [
            "memory", "tcp:interface=lo,mdns=embedded",
            "bluetooth:adapter=hci60000,tcp:interface=lo,mdns=embedded",
        ])
    func aFewLinesAreEnoughForTwoToMeet(_ transports: String) async throws {
        async let puma = chatOnce(as: "Puma", over: transports, identity: .ephemeral())
        async let lynx = chatOnce(as: "Lynx", over: transports, identity: .ephemeral())
        let answers = try await [puma, lynx]
        #expect(answers == ["Hello from Lynx!", "Hello from Puma!"])
    }

    @Test func everyTransportOfThePackageCanBeChosenByName() throws {
        for entry in TransportRegistry.standard.entries {
            #expect(try TransportRegistry.standard.makeAll(entry.scheme).map(\.scheme) == [entry.scheme])
        }
        let unknown = #expect(throws: NighError.self) { try TransportRegistry.standard.makeAll("pigeon") }
        #expect(unknown?.description.hasSuffix("known are: bluetooth, memory, tcp") == true)
    }
}
