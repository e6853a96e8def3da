import NighCore
import NighTCP
import NighTestKit
import NighUV
import Testing

extension RecordedTransport {
    /// Starts a transport on a loop of its own, which ends with it.
    convenience init(_ options: TCPOptions = TCPOptions(interface: "lo", discovery: .off)) {
        let loop = UVEventLoop()
        self.init(TCPTransport(options), on: loop, stopLoop: { loop.shutdown() })
    }

    func dial(_ text: String, timeout: Duration = .seconds(10)) {
        guard let address = TransportAddress(text) else { preconditionFailure("no address: \(text)") }
        dial(address, timeout: timeout)
    }

    var inbound: [PipeRecorder] { recorder.pipes.filter { $0.dial == nil } }
    var dialled: [PipeRecorder] { recorder.pipes.filter { $0.dial != nil } }

    /// The number of the TCP port on which it listens. Waits until it does.
    func port() throws -> UInt16 {
        try #require(wait { !$0.listening.isEmpty })
        return try #require(UInt16(recorder.listening[0].value.split(separator: ":").last ?? ""))
    }
}
