import Foundation
import Nigh

extension FileTransfer {
    /// Returns a Foundation `Progress` of this transfer, for user interfaces and code that expect one.
    ///
    /// It counts bytes, and is indeterminate while the size of a file is unknown. It follows the transfer to its end,
    /// up to ten times a second, whether or not the program keeps it. `cancel()`, `pause()` and `resume()` of the
    /// progress do the same to the transfer; the other program gets the reason. The keys `fileTotalCountKey` and
    /// `fileCompletedCountKey` have the numbers of files and folders, `throughputKey` the bytes a second and
    /// `estimatedTimeRemainingKey` the seconds that are left, if they are known.
    ///
    /// Each call returns another object.
    public func foundationProgress() -> Progress {
        let progress = Progress(totalUnitCount: -1)
        progress.kind = .file
        progress.isCancellable = true
        progress.isPausable = true
        progress.cancellationHandler = { self.cancel() }
        progress.pausingHandler = { self.pause() }
        progress.resumingHandler = { self.resume() }
        progress.show(self.progress)
        Task {
            for await news in updates { progress.show(news) }
            // What holds the transfer is no longer needed.
            progress.cancellationHandler = nil
            progress.pausingHandler = nil
            progress.resumingHandler = nil
        }
        return progress
    }
}

extension Progress {
    fileprivate func show(_ news: FileProgress) {
        totalUnitCount = news.total.map(Int64.init) ?? -1
        completedUnitCount = Int64(news.done)
        setUserInfoObject(news.itemCount, forKey: .fileTotalCountKey)
        setUserInfoObject(news.itemsDone, forKey: .fileCompletedCountKey)
        setUserInfoObject(news.bytesPerSecond.map { Int($0) }, forKey: .throughputKey)
        setUserInfoObject(news.timeLeft.map { $0 / .seconds(1) }, forKey: .estimatedTimeRemainingKey)
    }
}
