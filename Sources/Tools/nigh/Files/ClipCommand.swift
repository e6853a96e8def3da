import Arguments
import Glibc
import NighCodes
import NighCore
import NighFiles
import SessionArguments

/// `nigh clip`: sends the clipboard to another device, or fills it with the clipboard of another device.
struct ClipCommand: Subcommand {
    let commandName = "clip"
    let output: OutputOptions
    let session: SessionOptions
    let peer: PeerChoice?
    let code: OneTimeCode?
    /// Whether the clipboard is filled.
    let receives: Bool
    let patience: Duration?

    static let description = Command<any Subcommand>(
        "clip", "Sends the clipboard, or fills it with what another device sends",
        text: """
            It uses wl-paste and wl-copy on Wayland, xclip or xsel on X. Without PEER it shows a code, as `nigh send` does. \
            The other device fills its clipboard with `nigh clip --take CODE`, or with `nigh clip --take` if this one names \
            it. If it runs `nigh receive`, the clipboard arrives there as the file clipboard.txt.
            """,
        Operand(
            optional: "PEER", .text("PEER|CODE", candidates: .lines(of: CompleteCommand.line(for: .peers))),
            "the device to send to; with --take, the code on the other device"),
        OutputOptions.options, SessionOptions.options,
        Option(flag: "take", "fills the clipboard of this device, once"),
        Option(
            "wait", .duration(in: .seconds(1)...(.seconds(86_400))),
            "gives up if nothing moves for this time"),
        examples: [
            Example("puma", "sends the clipboard to the device called puma"),
            Example("", "shows a code; there: nigh clip --take CODE"),
            Example("--take 7-crisp-otter-lamp", "fills the clipboard of this device"),
        ]
    ) { word, output, session, receives, patience in
        var (peer, code): (PeerChoice?, OneTimeCode?)
        if let word, receives {
            code = try Notation.oneTimeCode.value(of: word, for: "CODE")
        } else if let word {
            peer = try TransportAddress.typed(word).map(PeerChoice.address) ?? .named(word)
        }
        return ClipCommand(
            output: output, session: session, peer: peer, code: code, receives: receives, patience: patience)
    }

    /// The name of the clipboard as a file.
    private static let fileName = "clipboard.txt"

    func run(_ results: Results, _ stopRequest: StopRequest) async throws -> ExitStatus {
        guard receives else {
            try Clipboard.replaceStandardInput(with: try Clipboard.read())
            let send = SendCommand(
                output: output, session: session, words: [SendCommand.standardInput],
                named: peer.map { [$0] } ?? [], name: Self.fileName, giveUp: patience)
            return try await send.run(results, stopRequest)
        }
        let taken = try Taken()
        let options = ReceiveOptions(
            folder: taken.folder.path, file: nil, policy: .ask, source: nil, patience: patience,
            mostBytes: Clipboard.limit, isOnce: true, replaces: false, command: nil, notifies: false)
        let receive = ReceiveCommand(output: output, session: session, code: code, options: options)
        let status = try await receive.run(results, stopRequest)
        guard status == .success else { return status }
        try Clipboard.write(try taken.content())
        results.remark("the clipboard is filled")
        return .success
    }
}

/// A folder for received content, which only this user can read. It goes with its last reference.
private final class Taken {
    let folder: OpenFolder

    init() throws(FileFailure) {
        var template = Clipboard.temporaryPath
        guard mkdtemp(&template) != nil else { throw .system("making a folder for the clipboard") }
        folder = try OpenFolder(
            String(decoding: template.dropLast().map(UInt8.init(bitPattern:)), as: UTF8.self))
    }

    deinit {
        for name in (try? folder.names()) ?? [] { folder.remove(name.text) }
        rmdir(folder.path)
    }

    /// The content of the file that was received.
    func content() throws(FileFailure) -> [UInt8] {
        guard let name = try folder.names().first else { throw FileFailure("nothing was received") }
        guard let file = try folder.open(name.text, O_RDONLY), let content = file.content else {
            throw .system("reading what was received")
        }
        return content
    }
}
