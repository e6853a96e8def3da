/// A pipe and its link: passes the pipe's reports to the session machine, and messages on to the program. Loop only.
final class PipeConnection: PipeHandler {
    // The properties that each message uses are not checked for exclusive access; see `Conversation`.

    let pipe: any Pipe
    let link: Link
    /// Whether reading is paused, until the link's answers have been written or while the link is held.
    var isPaused = false
    /// How the pipe ended, if it ended while the link was held.
    var endWhileHeld: Result<Void, NighError>?
    /// Whether the driver counts this pipe among the closed ones that still have something to send.
    var isDraining = false
    /// The pipe's port for datagrams, once it is open.
    @exclusivity(unchecked) private(set) var datagramPort: (any DatagramPort)?
    /// The driver holds the connection in turn, until the link is over or the session is closed. From then on only the
    /// pipe holds it, as its handler, until it is drained.
    private let driver: SessionDriver

    init(pipe: any Pipe, link: Link, driver: SessionDriver) {
        self.pipe = pipe
        self.link = link
        self.driver = driver
    }

    /// Begins to receive packets, which begin with `prefix`.
    func start(_ port: any DatagramPort, prefix: UInt64) {
        datagramPort = port
        port.start(handler: self, prefix: prefix)
    }

    func closeDatagrams() {
        datagramPort?.close()
        datagramPort = nil
    }

    func pipe(_ pipe: any Pipe, received bytes: ByteSlice) {
        guard !driver.isClosed else { return }
        let now = driver.loop.now
        driver.noteInput(bytes.count, from: link.number, now: now)
        driver.inTurn {
            driver.machine.received(bytes, on: link, now: now)
            if link.machine.tap != nil { driver.observe(link) }
            if link.isHeld { return }
            driver.deliver(from: self, now: now)
            if link.machine.tap != nil { driver.observe(link) }
        }
    }

    func pipeBecameWritable(_ pipe: any Pipe) {
        driver.inTurn { driver.machine.markDirty(link) }
    }

    /// The other side writes no more. Without its answers there is no conversation, so the link is over.
    func pipeEnded(_ pipe: any Pipe) {
        driver.inTurn { driver.pipeOver(self, error: nil) }
        pipe.close(.afterWriting)
    }

    func pipeClosed(_ pipe: any Pipe, error: NighError?) {
        driver.inTurn { driver.pipeOver(self, error: error) }
    }

    func pipeDrained(_ pipe: any Pipe) {
        guard isDraining else { return }
        isDraining = false
        driver.pipeDrained()
    }
}

extension PipeConnection: DatagramHandler {
    func datagramPort(
        _ port: any DatagramPort, received packet: UnsafeMutableRawBufferPointer, from source: DatagramSource
    ) {
        guard !driver.isClosed else { return }
        driver.inTurn { driver.receive(packet, from: source, on: link, now: driver.loop.now) }
    }
}
