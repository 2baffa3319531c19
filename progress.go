package rocketstore

import (
	"errors"

	"github.com/rocketstore/rocketstore/config"
	"github.com/rocketstore/rocketstore/mappedfile"
	"github.com/rocketstore/rocketstore/recovery"
)

// loadConfig reads the config files that the store itself needs. A damaged one without a backup is an error: taken for
// empty, it would mean to begin again.
func (s *Store) loadConfig() error {
	s.offsets = &config.ConsumerOffsets{Header: config.Header{Line: s.dialect.Name}}
	s.delayed = &config.DelayOffsets{Header: config.Header{Line: s.dialect.Name}}
	for _, t := range append([]config.Table{s.offsets, s.delayed}, s.opts.Tables...) {
		notice, err := config.Load[mappedfile.File](s.fsys, t)
		if damage, ok := errors.AsType[*config.DamageError](err); ok && !s.opts.ReadOnly {
			return &recovery.RefusedError{
				Kind: recovery.KindDamagedTable, File: damage.File, Offset: damage.Offset, Err: err,
				Text: damage.Err.Error() + "; nothing was changed: bring the file back, or remove it and its .bak to begin without it",
			}
		}
		if err != nil {
			return err
		}
		if notice != nil {
			s.notices = append(s.notices, recovery.Warning{Kind: notice.Kind, File: notice.File, Text: notice.Text})
		}
	}
	return s.loadIdle()
}

// saveConfig writes them back, where they changed. The log comes first: what is noted as delivered or read must not be lost.
// Nobody waits for the device meanwhile: what is written is a copy, which the sync after it covers.
func (s *Store) saveConfig() error {
	if err := s.engine.advance(); err != nil {
		return err
	}
	s.saveMu.Lock()
	defer s.saveMu.Unlock()
	s.configMu.Lock()
	copies := []config.Table{config.Freeze(s.offsets), config.Freeze(s.delayed)}
	s.configMu.Unlock()
	if _, _, err := s.log.Sync(); err != nil {
		return err
	}
	for _, t := range copies {
		if err := config.Save[mappedfile.File](s.fsys, t); err != nil {
			return err
		}
	}
	return nil
}

// progress is how far the transaction service has read one of its topics; 0 when nothing is stored.
func (s *Store) progress(topic string) int64 {
	s.configMu.Lock()
	defer s.configMu.Unlock()
	at, _ := s.offsets.At(topic, TransactionGroup, 0)
	return at
}

// setProgress notes it.
func (s *Store) setProgress(topic string, offset int64) {
	s.configMu.Lock()
	defer s.configMu.Unlock()
	s.offsets.Set(topic, TransactionGroup, 0, offset)
}

// ConsumerOffset is the next queue offset that a group reads, as config/consumerOffset.json has it; false when none is stored.
func (s *Store) ConsumerOffset(topic, group string, queueID int32) (int64, bool) {
	s.configMu.Lock()
	defer s.configMu.Unlock()
	return s.offsets.At(topic, group, queueID)
}

// SetConsumerOffset stores the next queue offset that a group reads. It reaches the file with the next checkpoint, at a
// clean stop, and by SaveConsumerOffsets.
func (s *Store) SetConsumerOffset(topic, group string, queueID int32, offset int64) {
	s.configMu.Lock()
	defer s.configMu.Unlock()
	s.offsets.Set(topic, group, queueID, offset)
}

// SaveConsumerOffsets writes config/consumerOffset.json.
func (s *Store) SaveConsumerOffsets() error {
	if err := s.writable(); err != nil {
		return err
	}
	return s.saveConfig()
}

// SaveTable writes one of [Options.Tables], unless it did not change since it was loaded or saved. It is for one goroutine at
// a time for each table, which nobody may change meanwhile.
func (s *Store) SaveTable(t config.Table) error {
	if err := s.writable(); err != nil {
		return err
	}
	return config.Save[mappedfile.File](s.fsys, t)
}
