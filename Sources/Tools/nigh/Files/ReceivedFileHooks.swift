import Glibc
import NighCore
import NighMemory

/// Runs the user's actions for a file that has arrived: a command, a notice on the desktop. One after the other, on a
/// thread of its own.
///
/// `@unchecked Sendable`: no property changes after the initialisation, and the queue belongs to its thread.
final class ReceivedFileHooks: @unchecked Sendable {
    /// A file that has arrived.
    struct File: Sendable {
        let path: String
        let size: Int
        let peer: Peer
    }

    private let command: String?
    private let notifies: Bool
    private let results: Results
    private let thread = ThreadEventLoop()

    init(command: String?, notifies: Bool, _ results: Results) {
        self.command = command
        self.notifies = notifies
        self.results = results
    }

    /// Runs the hooks for a file. Callable from any thread.
    func run(for file: File) {
        thread.execute { [self] in
            if let command { run(command, for: file) }
            if notifies { notify(of: file) }
        }
    }

    /// Waits until all hooks have ended.
    func finish() async {
        await withCheckedContinuation { continuation in thread.execute { continuation.resume() } }
    }

    /// The shell gets the path and the names as values, so nothing in them is run.
    private func run(_ command: String, for file: File) {
        let status = ChildProgram.run(
            ["sh", "-c", command, "nigh", file.path], input: nil, output: STDOUT_FILENO,
            variables: [
                ("NIGH_FILE", file.path), ("NIGH_SIZE", "\(file.size)"), ("NIGH_PEER", "\(file.peer.name)"),
                ("NIGH_PEER_ID", "\(file.peer.identity)"),
            ])
        if status != 0 {
            results.remark("--exec ended with status \(status.map { "\($0)" } ?? "127") for \(file.path)")
        }
    }

    private func notify(of file: File) {
        let name = file.path.split(separator: "/").last.map(String.init) ?? file.path
        let text = "\(file.peer.name): \(ByteCount(file.size))"
        // Text behind "--" is no option, whatever the file is called.
        let status = ChildProgram.run(
            ["notify-send", "--app-name=nigh", "--", "Received \(name)", text], input: nil, output: nil)
        if status == nil { results.remark("--notify needs notify-send: install libnotify-bin") }
    }
}
