import Nigh
import NighCalls
import NighCore

/// Reads which actors a peer has published. Loop only.
final class ListingInput {
    private let stream: ByteStream
    private let loop: any EventLoop
    private weak let system: ActorSystem?
    private var parser = StreamMessageParser()

    init(_ stream: ByteStream, on loop: any EventLoop, of system: ActorSystem) {
        self.stream = stream
        self.loop = loop
        self.system = system
    }

    func proceed() {
        // This side lists its actors in a stream of its own.
        stream.finish()
        while let system {
            switch stream.poll() {
            case .bytes(let bytes): parser.append(bytes)
            case .nothing:
                system.notifyListingReaders()
                return stream.notify(bytes: true, room: false, on: loop) { [weak self] in self?.proceed() }
            case .end, .failed: return system.listingEnded(self, of: stream.peer)
            }
            do throws(WireError) {
                while let message = try parser.next(limit: ListingRecord.longest) {
                    guard let record = try ListingRecord(reading: message) else { continue }
                    try system.note(record, of: stream.peer)
                }
            } catch {
                stream.cancelReading(because: error.message)
                return system.listingEnded(self, of: stream.peer)
            }
        }
    }
}

/// Lists this side's actors to a peer. Loop only.
final class ListingOutput {
    private let stream: ByteStream
    private let loop: any EventLoop
    /// The contracts of the actors that the peer is to know, and of those that were listed to it, by their names.
    private var wanted: [String: ActorContract] = [:]
    private var listed: [String: ActorContract] = [:]
    private var unwritten: ByteSlice?

    init(_ stream: ByteStream, on loop: any EventLoop) {
        self.stream = stream
        self.loop = loop
        stream.cancelReading()
    }

    /// Has the peer know of these actors, and of no others.
    func show(_ contracts: [String: ActorContract]) {
        wanted = contracts
        proceed()
    }

    private func proceed() {
        while let bytes = unwritten ?? nextFrame() {
            // A stream that has ended ends with its conversation.
            guard let count = try? stream.tryWrite(bytes) else { return }
            unwritten = count < bytes.count ? bytes[count..<bytes.count] : nil
            if unwritten != nil {
                return stream.notify(bytes: false, room: true, on: loop) { [weak self] in self?.proceed() }
            }
        }
    }

    private func nextFrame() -> ByteSlice? {
        if let name = listed.keys.filter({ wanted[$0] == nil }).min() {
            listed[name] = nil
            return ListingRecord.unpublished(name: name).frame
        }
        guard
            let (name, contract) = wanted.filter({ listed[$0.key] != $0.value }).min(by: { $0.key < $1.key })
        else { return nil }
        listed[name] = contract
        return ListingRecord.published(name: name, contract: contract.name, version: contract.version).frame
    }
}
