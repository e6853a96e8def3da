import NighCore

/// Advertisements as bytes, as third-party transports carry them. An accepted one must mean the same when it is written
/// again.
enum AdvertisementTarget {
    private static let valid: [[UInt8]] = [
        Advertisement(
            service: "chat", peer: SessionHarness.identities[0].peerID, name: DisplayName(fitting: "Puma")),
        Advertisement(
            service: "four-in-a-row", peer: SessionHarness.identities[1].peerID,
            name: DisplayName(fitting: "K\u{FC}che"),
            info: (try? DiscoveryInfo(["table": "open", "x": ""])) ?? .none, isFull: true,
            identity: SessionHarness.identities[0].peerID),
    ].map(\.bytes)

    static func run(_ mutator: inout Mutator) throws {
        var bytes = mutator.pick(valid)
        if !mutator.oneIn(8) { for _ in 0...mutator.number(below: 4) { mutator.change(&bytes, with: valid) } }
        guard let read = Advertisement(bytes: bytes) else {
            if valid.contains(bytes) { throw Finding("a proper advertisement is not understood") }
            return
        }
        let written = read.bytes
        if written.count > Advertisement.maximumByteCount {
            throw Finding("\(written.count) bytes are written")
        }
        if Advertisement(bytes: written) != read {
            throw Finding("\(read) is not the same when it is read again")
        }
    }
}
