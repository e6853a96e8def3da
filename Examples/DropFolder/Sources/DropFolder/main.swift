import FoundationEssentials
import Glibc
import Nigh

// A drop folder: `DropFolder FOLDER` on each device. What is put into the folder goes to every device that is
// connected, into its folder "from others". A transfer that is interrupted continues when the two devices meet again.

let arguments = CommandLine.arguments.dropFirst()
guard let folder = arguments.first else {
    print("usage: DropFolder FOLDER [TRANSPORTS]")
    exit(2)
}
let (files, arrivals) = (FileManager.default, folder + "/from others")
try files.createDirectory(atPath: arrivals, withIntermediateDirectories: true)

/// The sizes and times of a file, or of a folder and everything in it. They change with the content.
struct Snapshot: Equatable {
    private var parts: [String: [Int]] = [:]

    init(of path: String) {
        for name in [""] + ((try? files.subpathsOfDirectory(atPath: path)) ?? []) {
            var facts = stat()
            lstat(path + "/" + name, &facts)
            parts[name] = [Int(facts.st_size), Int(facts.st_mtim.tv_sec), Int(facts.st_mtim.tv_nsec)]
        }
    }
}

/// Snapshots of everything in the folder, by name.
func snapshots() throws -> [String: Snapshot] {
    var snapshots: [String: Snapshot] = [:]
    for name in try files.contentsOfDirectory(atPath: folder)
    where !name.hasPrefix(".") && name != "from others" {
        snapshots[name] = Snapshot(of: folder + "/" + name)
    }
    return snapshots
}

/// The files that were sent to each peer since the program started, so that none is sent twice if it comes again.
actor Deliveries {
    private var sent: [PeerID: [String: Snapshot]] = [:]

    /// Marks a file as sent. Returns false if it was sent before with this snapshot.
    func add(_ name: String, _ snapshot: Snapshot, to peer: PeerID) -> Bool {
        sent[peer, default: [:]].updateValue(snapshot, forKey: name) != snapshot
    }

    func remove(_ name: String, to peer: PeerID) { sent[peer]?[name] = nil }
}

let deliveries = Deliveries()

/// Sends the files in the folder that this peer did not get yet, for as long as it is connected. A file is sent once it
/// has not changed for a second, so that it is not sent while somebody still copies it there.
func serve(_ peer: Peer, in session: Session) async {
    var before: [String: Snapshot] = [:]
    do {
        while session.peer(peer.id).isConnected {
            let now = try snapshots()
            for (name, snapshot) in now where before[name] == snapshot {
                guard await deliveries.add(name, snapshot, to: peer.id) else { continue }
                try await send(name, to: peer)
            }
            before = now
            try await Task.sleep(for: .seconds(1))
        }
    } catch { print("\(peer.name): \(error)") }
}

func send(_ name: String, to peer: Peer) async throws(NighError) {
    do throws(NighError) {
        let transfer = try await peer.send(file: folder + "/" + name)
        for await progress in transfer.updates {
            print("\(name) to \(peer.name): \(Int((progress.fraction ?? 0) * 100)) %")
        }
        try await transfer.finish()
    } catch {
        // A file that cannot be sent does not stop the others. Any other error ends the conversation, and then the file
        // continues in the next one.
        guard case .file(let fault) = error.cause else {
            await deliveries.remove(name, to: peer.id)
            throw error
        }
        if fault.reason == .changed { await deliveries.remove(name, to: peer.id) }
        print(error)
    }
}

func receiveFiles(_ session: Session) async {
    await withDiscardingTaskGroup { group in
        for await transfer in session.acceptedFiles { group.addTask { await receive(transfer) } }
    }
}

func receive(_ transfer: FileTransfer) async {
    _ = try? await transfer.finish()
    for result in transfer.results { print(result.path.map { "received \($0)" } ?? result.item.path) }
}

do {
    try await withSession(
        service: "drop-folder", transports: arguments.dropFirst().first, endsOnInterrupt: true
    ) { settings in
        settings.files = .everyone(into: arrivals)
        settings.connectsAutomatically = true
    } _: { session in
        await withDiscardingTaskGroup { group in
            group.addTask { await receiveFiles(session) }
            for await event in session.events {
                if case .connected(let peer) = event { group.addTask { await serve(peer, in: session) } }
                if case .transportDown = event { print(event) }
            }
            group.cancelAll()
        }
    }
} catch { print(error) }
