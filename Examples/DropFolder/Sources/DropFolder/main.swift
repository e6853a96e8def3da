import FoundationEssentials
import Glibc
import Nigh

// A drop folder: `DropFolder FOLDER` on each device. What is put into the folder goes to every device that is connected,
// into its folder "from others". A transfer that is interrupted continues when the two devices meet again.

let arguments = CommandLine.arguments.dropFirst()
guard let folder = arguments.first else {
    print("usage: DropFolder FOLDER [TRANSPORTS]")
    exit(2)
}
let (files, arrivals) = (FileManager.default, folder + "/from others")
try files.createDirectory(atPath: arrivals, withIntermediateDirectories: true)

/// Sends what is in the folder and was not sent to this peer, until the conversation ends.
func serve(_ peer: Peer) async {
    var sent: Set = ["from others"]
    do {
        while true {
            let names = try files.contentsOfDirectory(atPath: folder)
            for name in names where !name.hasPrefix(".") && sent.insert(name).inserted {
                try await send(name, to: peer)
            }
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
        // A file that cannot be sent does not stop the others. Any other error ends the conversation.
        guard case .file = error.cause else { throw error }
        print(error)
    }
}

func receive(_ transfer: FileTransfer) async {
    _ = try? await transfer.finish()
    for result in transfer.results { print(result.path.map { "received \($0)" } ?? result.item.path) }
}

do {
    try await withSession(service: "drop-folder", transports: arguments.dropFirst().first) { settings in
        settings.files = .everyone(into: arrivals)
        settings.connectsAutomatically = true
    } _: { session in
        await withDiscardingTaskGroup { group in
            for await event in session.events {
                if case .connected(let peer) = event { group.addTask { await serve(peer) } }
                if case .filesAccepted(let transfer) = event { group.addTask { await receive(transfer) } }
            }
            group.cancelAll()
        }
    }
} catch { print(error) }
